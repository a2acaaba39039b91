"""Tables of recorded curves: what is accepted, and what is refused with its row named."""

import pandas as pd
import pytest

from tests.support import SPACE
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.simulation.curve_table import TableCurves, read_table
from workbench.simulation.sources import read_curves


def rows(**columns) -> pd.DataFrame:
    """Two configurations, two seeds, three steps."""
    frame = pd.DataFrame(
        [(c, s, 100 * n) for c in "ab" for s in (0, 1) for n in (1, 2, 4)], columns=["config_id", "seed", "step"]
    )
    frame["score"] = range(12)
    return frame.assign(**columns)


@pytest.fixture
def written(tmp_path):
    def write(frame, name="curves.csv"):
        path = tmp_path / name
        frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
        return path

    return write


def test_what_is_kept_may_be_named_by_a_number(tmp_path) -> None:
    rows = "".join(f"a,0,{step},{env}.5,{env}\n" for env in (0, 1) for step in (1, 2))
    (tmp_path / "t.csv").write_text(f"config_id,seed,step,score,env\n{rows}")
    assert read_table(tmp_path / "t.csv", only={"env": 1}).scores.max() == 1.5
    with pytest.raises(InvalidInput, match="unknown value of env in t"):
        read_table(tmp_path / "t.csv", only={"env": 2})


def test_one_seed_or_one_configuration_of_a_table_is_kept(written) -> None:
    assert read_table(written(rows()), only={"seed": 1}).seeds == [1]
    assert read_table(written(rows()), only={"config_id": "b"}).configs == [{"config_id": "b"}]


@pytest.mark.parametrize("name", ["curves.csv", "curves.parquet"])
def test_a_table_gives_its_curves_back(written, name) -> None:
    table = read_table(written(rows(lr=[0.1] * 6 + [0.2] * 6), name))
    assert table.configs == [{"config_id": "a", "lr": 0.1}, {"config_id": "b", "lr": 0.2}]
    assert table.scores.tolist() == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]
    assert table.durations[0, 0].tolist() == pytest.approx([0.75, 0.75, 1.5])  # by steps, one on average
    model = TableCurves(table, seed=3)
    scores = [model.phase(0, phase, table.configs[1], 7)[1] for phase in range(3)]
    assert scores in ([6, 7, 8], [9, 10, 11])
    with pytest.raises(SchedulerError, match="have 3 steps"):
        model.phase(0, 3, table.configs[1], 7)
    with pytest.raises(SchedulerError, match="no curve of config_id 'z'"):
        model.phase(0, 0, {"config_id": "z"}, 7)
    with pytest.raises(
        SchedulerError, match=r"its own configurations alone.*{'lr': 0\.1}: take the searcher 'shuffled'"
    ):
        model.phase(0, 0, {"lr": 0.1}, 7)


def test_categories_in_whatever_order_keep_their_curves(written) -> None:
    frame = rows(lr=[0.1] * 6 + [0.2] * 6)
    frame["config_id"] = pd.Categorical(frame["config_id"], ["b", "a"])
    frame["seed"] = pd.Categorical(frame["seed"], [1, 0])
    table = read_table(written(frame, "curves.parquet"))
    assert table.configs == [{"config_id": "a", "lr": 0.1}, {"config_id": "b", "lr": 0.2}]
    assert table.seeds == [0, 1]
    assert table.scores.tolist() == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]


def test_the_seed_decides_which_recording_a_configuration_gets(written) -> None:
    table = read_table(written(rows()))
    picks = {tuple(TableCurves(table, s).phase(0, 0, c, 0)[1] for c in table.configs) for s in range(30)}
    assert picks == {(0, 6), (0, 9), (3, 6), (3, 9)}


def test_configurations_are_drawn_again_with_their_curves(written) -> None:
    frame = rows(lr=[0.1] * 6 + [0.2] * 6, duration=[1.0, 2.0, 3.0] * 2 + [4.0, 5.0, 6.0] * 2)
    table = read_table(written(frame))
    drawn = [table.redrawn(seed) for seed in range(20)]
    assert {tuple(config["lr"] for config in of.configs) for of in drawn} == {
        (a, b) for a in (0.1, 0.2) for b in (0.1, 0.2)
    }
    for of in drawn:
        assert [config["config_id"] for config in of.configs] == [0, 1]
        for config, scores, durations in zip(of.configs, of.scores, of.durations, strict=True):
            row = [0.1, 0.2].index(config["lr"])
            assert (scores.tolist(), durations.tolist()) == (table.scores[row].tolist(), table.durations[row].tolist())
    described = {"kind": "table", "path": str(written(frame)), "redraw": 3}
    assert read_curves(described, None).configs == drawn[3].configs
    with pytest.raises(InvalidInput, match="redraw a whole number from 0, got -1"):
        read_curves({**described, "redraw": -1}, None)


def test_recorded_seconds_become_durations(written) -> None:
    table = read_table(written(rows(wall_s=[5.0, 7.0, 8.0] * 4)))
    assert table.durations[1, 1].tolist() == [5.0, 2.0, 1.0]


def test_durations_may_be_given_instead(written) -> None:
    table = read_table(written(rows(duration=[5.0, 0.1, 0.1] * 4)))
    assert table.durations[0, 0].tolist() == [5.0, 0.1, 0.1]
    assert all("duration" not in config for config in table.configs)


def test_columns_are_mapped_and_rows_chosen(written) -> None:
    both = pd.concat([rows(env="Pong"), rows(env="Boxing")]).rename(columns={"score": "return"})
    path = written(both)
    table = read_table(path, columns={"score": "return"}, only={"env": "Boxing"})
    assert table.configs == [{"config_id": "a"}, {"config_id": "b"}]
    with pytest.raises(InvalidInput, match=r"row 13 .*step 100 follows 400.*choose one with only="):
        read_table(path, columns={"score": "return"})
    with pytest.raises(InvalidInput, match=r"unknown value of env in curves.csv 'Pnog': did you mean 'Pong'"):
        read_table(path, columns={"score": "return"}, only={"env": "Pnog"})
    with pytest.raises(InvalidInput, match="no column 'score', only config_id, seed, step, return, env: map one"):
        read_table(path)


def test_a_second_table_adds_the_hyperparameters(written) -> None:
    configs = pd.DataFrame({"config_id": ["b", "c", "a"], "lr": [2.0, 3.0, 1.0]})
    table = read_table(written(rows()), written(configs, "configs.csv"))
    assert table.configs == [{"config_id": "a", "lr": 1.0}, {"config_id": "b", "lr": 2.0}]


@pytest.mark.parametrize(("called", "there"), [("config", "config"), ("config_id", "config"), ("config", "config_id")])
def test_columns_of_the_second_table_are_mapped_as_well(written, called, there) -> None:
    configs = written(pd.DataFrame({there: ["b", "a"], "learning_rate": [2.0, 1.0]}), "configs.csv")
    path, columns = (
        written(rows().rename(columns={"config_id": called})),
        {"config_id": "config", "lr": "learning_rate"},
    )
    table = read_table(path, configs, columns=columns)
    assert table.configs == [{"config_id": "a", "lr": 1.0}, {"config_id": "b", "lr": 2.0}]
    with pytest.raises(InvalidInput, match=r"unknown column of curves\.csv 'rate'"):
        read_table(path, configs, columns={**columns, "lr": "rate"})


def test_what_changes_within_a_curve_is_no_hyperparameter_and_left_out_in_one_line(written) -> None:
    frame = rows(lr=[0.1] * 6 + [0.2] * 6, loss=[3.0, None, 1.0] * 4, fps=range(12), batch=[32] * 12)
    with pytest.warns(UserWarning, match=r"^curves.csv: left out .* change within curves: loss, fps$") as told:
        table = read_table(written(frame))
    assert len(told) == 1
    assert table.configs == [{"config_id": "a", "lr": 0.1, "batch": 32}, {"config_id": "b", "lr": 0.2, "batch": 32}]


def test_a_hyperparameter_that_is_wrong_in_a_row_is_not_taken_for_what_changes(written) -> None:
    with pytest.raises(InvalidInput, match=r"row 2: lr is 0.3 for config_id a, which had 0.1 before"):
        read_table(written(rows(lr=[0.1, 0.3, *[0.1] * 4, *[0.2] * 6])))


def test_a_row_is_named_as_its_columns_have_it(written) -> None:
    """Of a table of numbers alone a row has nothing but floats."""
    frame = rows(task=[0] * 3 + [1] * 9)
    frame["config_id"] = frame["config_id"].map({"a": 0, "b": 1})
    with pytest.raises(InvalidInput, match=r"row 4: task is 1 for config_id 0, which had 0 before; choose one value"):
        read_table(written(frame))
    with pytest.raises(InvalidInput, match=r"row 2 \(config_id 0, seed 0\): step 100 follows 100"):
        read_table(written(frame.assign(step=[100, 100, 200] * 4)))


def test_what_was_written_anew_is_read_anew(written) -> None:
    """As in a notebook, which lives on; what has stayed as it was is read once."""

    def found():
        curves = {"kind": "table", "path": str(path), "configs": str(configs)}
        costs = {"kind": "synthetic", "n_phases": 1, "cost_table": str(cost)}
        return read_curves(curves, None).table, read_curves(costs, SPACE).model(0).cost

    configs = written(pd.DataFrame({"config_id": ["a", "b"], "lr": [1.0, 2.0]}), "configs.csv")
    path, cost = written(rows()), written(pd.DataFrame({"t_max": [1, 2], "wall_s": [1.0, 3.0]}), "cost.csv")
    table, costs = found()
    assert all(again is before for again, before in zip(found(), (table, costs), strict=True))
    written(rows(score=range(100, 112)))
    written(pd.DataFrame({"t_max": [1, 2], "wall_s": [15.0, 5.0]}), "cost.csv")
    assert (found()[0].scores.min(), found()[1].costs) == (100, [1.5, 0.5])
    written(pd.DataFrame({"config_id": ["a", "b"], "lr": [10.0, 20.0]}), "configs.csv")
    assert [config["lr"] for config in found()[0].configs] == [10.0, 20.0]


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({"config_id": ["a", "b", "a"], "lr": [1, 2, 1]}, "configs.csv, row 3: config_id a stands there a second time"),
        ({"config_id": ["a"], "lr": [1]}, "row 7 of the curves: config_id b is not in configs.csv"),
        ({"config_id": ["a", "b"], "lr": [1, None]}, "configs.csv, row 2: lr is missing"),
        ({"id": ["a", "b"]}, "configs.csv has no column 'config_id', only id: map one with columns={'config_id': …}"),
    ],
)
def test_a_bad_second_table_is_refused(written, configs, error) -> None:
    with pytest.raises(InvalidInput, match=error):
        read_table(written(rows()), written(pd.DataFrame(configs), "configs.csv"))


def test_a_column_may_be_called_row(written) -> None:
    configs = written(pd.DataFrame({"config_id": ["a", "b"], "row": [3.0, 4.0]}), "configs.csv")
    assert [config["row"] for config in read_table(written(rows()), configs).configs] == [3.0, 4.0]
    assert [config["row"] for config in read_table(written(rows(row=[5] * 6 + [6] * 6))).configs] == [5, 6]
    with pytest.raises(InvalidInput, match="row 12: score is missing"):
        read_table(written(changed(12, "score", None).assign(row=7)))


def test_a_column_is_there_once(written) -> None:
    configs = pd.DataFrame({"config_id": ["a", "b"], "lr": [0.1, 0.2]})
    with pytest.raises(InvalidInput, match=r"configs\.csv and the curves both have a column 'lr'"):
        read_table(written(rows(lr=0.1)), written(configs, "configs.csv"))
    with pytest.raises(InvalidInput, match="has a column 'score' already: 'return' cannot stand for it"):
        read_table(written(rows(**{"return": 0.0})), columns={"score": "return"})


def changed(row, column, value) -> pd.DataFrame:
    frame = rows(lr=[0.1] * 6 + [0.2] * 6).astype({"score": object, "lr": object, "step": object})
    frame.loc[row - 1, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (changed(4, "score", None), "row 4: score is missing"),
        (changed(4, "score", "inf"), "row 4: score is .*inf.*, not a number"),
        (changed(4, "score", "high"), "row 4: score is 'high', not a number"),
        (changed(5, "lr", None), "row 5: lr is missing"),
        (rows(lr=[0.1] * 3 + [0.3] * 9), "row 4: lr is 0.3 for config_id a, which had 0.1 before"),
        (changed(2, "step", 100), r"row 2 \(config_id a, seed 0\): step 100 follows 100: it must grow"),
        (changed(3, "step", 150), r"row 3 \(config_id a, seed 0\): step 150 follows 200: it must grow"),
        (changed(1, "step", 0), r"row 1 \(config_id a, seed 0\): step 0 is not above 0"),
        (changed(6, "step", 500), "row 6: the curve of config_id a, seed 1 ends here with 3 steps"),
        (rows().drop(index=5), "row 5: the curve of config_id a, seed 1 ends here with 2 steps"),
        (
            pd.concat([rows(), rows().head(3).assign(seed=2)]),
            r"row 12: config_id b has the seeds 0, 1, the others 0, 1, 2",
        ),
        (rows(duration=[5.0, 0.0, 8.0] * 4), r"row 2 \(config_id a, seed 0\): duration 0 is not above 0"),
        (rows(duration=[1.0, 2.0, 3.0] * 4, wall_s=[1.0, 2.0, 3.0] * 4), "both wall_s and duration"),
        (rows(wall_s=[5.0, 4.0, 8.0] * 4), r"row 2 \(config_id a, seed 0\): wall_s 4 follows 5"),
        (rows().drop(columns="seed"), "no column 'seed'"),
        (rows().head(0), "has no rows"),
    ],
)
def test_a_bad_table_is_refused_with_its_row(written, frame, error) -> None:
    with pytest.raises(InvalidInput, match=error):
        read_table(written(frame))


def test_a_file_that_is_no_table_is_refused(tmp_path) -> None:
    (tmp_path / "x.parquet").write_text("nothing")
    for name, why in {"x.parquet": "", "absent.parquet": "no such file$", "absent.csv": "no such file$"}.items():
        with pytest.raises(InvalidInput, match=f"cannot read the table .*{name}: {why}"):
            read_table(tmp_path / name)
