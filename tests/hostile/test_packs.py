"""A pack from somebody else, or damaged on its way: one line, nothing kept, nothing run, no path out of its folder."""

import copy
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.study.test_pack import logged
from tests.support import files
from workbench import pack, unpack
from workbench.core.errors import InvalidInput, WorkbenchError

TRIAL = "checkpoints/trial-00001/phase-000"


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> bytes:
    here = tmp_path_factory.mktemp("here")
    logged(here / "kb.db")
    return pack(here / "kb.db", "one", here / "p").file.read_bytes()


@pytest.fixture
def good(packed, tmp_path) -> Path:
    (tmp_path / "p").write_bytes(packed)
    return tmp_path / "p"


def contents(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def made(file: Path, members: dict[str, bytes], **how) -> None:
    with zipfile.ZipFile(file, "w", **how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def refused(file: Path, there: Path, match: str) -> None:
    """Unpack into an empty folder: one line, and the folder is still empty."""
    there.mkdir()
    before = files(there.parent)
    with pytest.raises(WorkbenchError, match=match) as told:
        unpack(file, there / "kb.db")
    assert len(str(told.value).splitlines()) == 1
    assert files(there.parent) == before


def test_what_is_not_spoiled_is_taken(good, tmp_path) -> None:
    made(good, contents(good))
    assert unpack(good, tmp_path / "there" / "kb.db").name == "one"


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "/tmp/out",
        f"{TRIAL}/../../../../out",
        f"{TRIAL}/../phase.txt",
        f"{TRIAL}/sub/../../x",
        f"{TRIAL}//phase.txt",
        f"{TRIAL}/a\\b",
        f"{TRIAL}/a\nb",
        f"{TRIAL}/",
        "checkpoints/../trial-00001/phase-000/x",
        "checkpoints/trial-00001/x",
        "study.db-wal",
        "kb.db.checkpoints/x",
        "run.py",
    ],
)
def test_a_members_name_cannot_lead_anywhere(good, tmp_path, name) -> None:
    made(good, {**contents(good), name: b"x"})
    refused(good, tmp_path / "there", "which no workbench packs|other checkpoints than there are")


def test_a_link_is_written_as_the_file_that_it_is_not(good, tmp_path) -> None:
    members = contents(good)
    with zipfile.ZipFile(good, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            link = name.endswith("phase.txt")
            info.external_attr = (0o120777 if link else 0o600) << 16
            archive.writestr(info, b"/etc/hostname" if link else data)
    refused(good, tmp_path / "there", "is not what was written")


def twice(members) -> None:
    members["checkpoints/trial-00001/phase-000/manifest.json"] = b"{}"


def outside(members) -> None:
    told = json.loads(members[f"{TRIAL}/manifest.json"])
    told["sha256"]["../../../../../../../dev/zero"] = "0"  # whoever added it up would never end
    members[f"{TRIAL}/manifest.json"] = json.dumps(told).encode()


def endless(members) -> None:
    told = json.loads(members[f"{TRIAL}/manifest.json"])
    told["sha256"]["/dev/zero"] = "0"
    members[f"{TRIAL}/manifest.json"] = json.dumps(told).encode()


def stowaway(members) -> None:
    members[f"{TRIAL}/__init__.py"] = b"raise SystemExit"


def other_checkpoints(members) -> None:
    about = json.loads(members["pack.json"])
    members["pack.json"] = json.dumps({**about, "checkpoints": []}).encode()


def renamed(members) -> None:
    for name in [name for name in members if name.startswith(TRIAL)]:
        members[name.replace("trial-00001", "elsewhere")] = members.pop(name)
    about = json.loads(members["pack.json"])
    members["pack.json"] = json.dumps({**about, "checkpoints": ["elsewhere/phase-000"]}).encode()


def about(**changes):
    def change(members) -> None:
        members["pack.json"] = json.dumps({**json.loads(members["pack.json"]), **changes}).encode()

    return change


def deep(members) -> None:
    members["pack.json"] = b"[" * 100_000


def lacking(name):
    return lambda members: members.pop(name)


def database(*statements: str):
    def change(members) -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(members["study.db"])
            with connection:
                for statement in statements:
                    connection.execute(statement)
            members["study.db"] = connection.serialize()

    return change


def garbage(members) -> None:
    members["study.db"] = b"not a database" * 500


SPOILED = {
    "a manifest that lists nothing": (twice, "cannot be read"),
    "a manifest that climbs out": (outside, "outside its folder"),
    "a manifest that names a device": (endless, "outside its folder"),
    "a file that no manifest names": (stowaway, "holds files that its manifest does not name"),
    "checkpoints that are not listed": (other_checkpoints, "lists other checkpoints than there are"),
    "a checkpoint of another name": (renamed, "is not a checkpoint's name"),
    "a name that leads elsewhere": (about(name="../one"), "is not what a workbench writes"),
    "a name that is another study's": (about(name="two"), "holds another study than"),
    "settings that are others": (about(spec={"seed": 1}), "holds another study than"),
    "versions that are none": (about(versions=[1]), "is not what a workbench writes"),
    "a later format": (about(format=2), "it has format 2, this workbench reads 1"),
    "a description without end": (deep, "is not what a workbench writes"),
    "no description": (lacking("pack.json"), "pack.json is missing: it is no pack"),
    "no log": (lacking("study.db"), "study.db is missing: it is no pack"),
    "no manifest": (lacking(f"{TRIAL}/manifest.json"), "no whole checkpoint"),
    "a log that is no database": (garbage, "study.db cannot be read as a knowledge base"),
    "a view": (database("CREATE VIEW v AS SELECT 1"), "the view 'v': do not trust it"),
    "a trigger": (
        database("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM studies; END"),
        "the trigger 't': do not trust it",
    ),
    "a second study": (
        database("INSERT INTO studies (name, created_unix, spec) VALUES ('two', 0, '{}')"),
        "holds another study than",
    ),
    "events of nonsense": (database("UPDATE events SET data = '7'"), "holds what no driver has written"),
    "events in disorder": (
        database("UPDATE events SET kind = 'phase_ended', phase = 9, data = '{\"score\": 1}' WHERE kind = 'decision'"),
        "the order of its events cannot be mended|comes after|was not the phase due",
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_was_spoiled_is_refused_in_one_line_and_nothing_of_it_is_kept(good, tmp_path, what) -> None:
    spoil, match = SPOILED[what]
    members = contents(good)
    spoil(members)
    made(good, members)
    refused(good, tmp_path / "there", match)


def test_one_that_would_swell_is_refused_before_it_is_read(good, tmp_path) -> None:
    made(good, {**contents(good), f"{TRIAL}/zeros": bytes(10_000_000)}, compression=zipfile.ZIP_DEFLATED)
    assert good.stat().st_size < 100_000
    refused(good, tmp_path / "there", "is compressed or encrypted")


def test_members_that_share_their_bytes_are_refused(good, tmp_path) -> None:
    """As in the archives that swell quadratically: one member under many names."""
    members = contents(good)
    with zipfile.ZipFile(good, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        log = archive.getinfo("study.db")
        for k in range(3):
            same = copy.copy(log)
            same.filename = f"{TRIAL}/{k}"
            archive.filelist.append(same)
    refused(good, tmp_path / "there", "said to be larger than the file")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_one_that_was_cut_short_is_refused(good, tmp_path, share) -> None:
    raw = good.read_bytes()
    good.write_bytes(raw[: int(share * len(raw))])
    refused(good, tmp_path / "there", "is no pack of a study, or is damaged .*: copy it here once more")


def test_wherever_a_byte_is_changed_nothing_false_is_taken_for_true(good, tmp_path) -> None:
    raw = good.read_bytes()
    taken = 0
    for at in range(7, len(raw), len(raw) // 60):
        good.write_bytes(raw[:at] + bytes([raw[at] ^ 0x55]) + raw[at + 1 :])
        there = tmp_path / f"there-{at}"
        try:
            found = unpack(good, there / "kb.db")
        except InvalidInput:
            assert not files(there) if there.exists() else True
        else:  # what says nothing was hit: a member's time, its rights
            taken += 1
            assert found.name == "one"
    assert taken < 10


def test_an_archive_of_something_else_is_said_to_be_no_pack(tmp_path) -> None:
    made(tmp_path / "p", {"readme.txt": b"hello"})
    refused(tmp_path / "p", tmp_path / "there", "'readme.txt', which no workbench packs")
    (tmp_path / "p").write_bytes(b"hello")
    (tmp_path / "there").rmdir()
    refused(tmp_path / "p", tmp_path / "there", "is no pack of a study")
