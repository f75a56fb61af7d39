"""The slowest second of what was played, by hand."""

from mha_lab.bench.playing import slowest_second


def test_the_slowest_second():
    even = [100.0 * i for i in range(31)]  # 3 seconds of 10 a second
    assert slowest_second(even) == 10
    paused = [time + (500 if time > 1000 else 0) for time in even]
    assert slowest_second(paused) == 5  # the second from the pause's beginning on, or before
    assert slowest_second([0.0, 400.0]) == 2  # there is no whole second
