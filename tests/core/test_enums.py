import pickle

from workbench.core.enums import at_hand
from workbench.core.ledger import TrialState
from workbench.core.protocols import Kind, Verdict


def test_members_are_attributes_and_still_members():
    for kinds in (Kind, Verdict, TrialState):
        for member in kinds:
            assert vars(kinds)[member.name] is member
            assert kinds(member.value) is kinds[member.name] is pickle.loads(pickle.dumps(member)) is member
    assert at_hand(Kind) is Kind
