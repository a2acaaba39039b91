"""HTS-RL as a trial of a study: HyperTrick over it on Dask workers."""

from workbench import HTS, Budget, Choice, HyperTrick, KnowledgeBase, LogUniform, RandomSearcher, Space, Study

SETTINGS = HTS("CartPole-v1", phase=Budget(updates=4), n_agents=4, n_actors=2, device="cpu")


def test_hypertrick_over_hts_on_two_workers(client, tmp_path) -> None:
    space = Space({"learning_rate": LogUniform(1e-4, 1e-2), "sync_interval": Choice([4, 8])})
    run = Study(
        name="hts",
        scheduler=HyperTrick(RandomSearcher(space), 4, 2),
        trainable=SETTINGS,
        db=tmp_path / "kb.db",
        client=client,
    ).start()
    assert run.wait(500)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        frames = kb["hts"].frames()
    assert frames.state == "ended"
    assert len(frames.trials) == 4
    lags = frames.metrics.query("name == 'policy_lag_p95'")["value"]
    assert len(lags) >= 4
    assert set(lags) <= {0.0, 1.0}
