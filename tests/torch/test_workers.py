"""Data loaded by worker processes: the same batches, the same random numbers, errors, and ends of every kind."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import fnad.torch as torch
from fnad.torch.utils.data import DataLoader, Dataset, IterableDataset, StackDataset, TensorDataset, get_worker_info

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Drawn(Dataset):
    """Examples with random numbers of every source."""

    def __len__(self):
        return 11

    def __getitem__(self, i):
        time.sleep(0.001 * (i % 3))  # so that workers are not always as fast as each other
        return torch.tensor([float(i)]), random.random(), np.random.rand(), torch.rand(2), os.getpid()


class Counted(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(10)) if info is None else iter(range(info.id, 10, info.num_workers))

    def __len__(self):
        return 10


def two_passes(**options):
    torch.manual_seed(0)
    loader = DataLoader(Drawn(), 2, shuffle=True, num_workers=2, **options)
    return [[[x.tolist() for x in batch] for batch in loader] for _ in range(2)]


@pytest.mark.parametrize("persistent", [False, True])
def test_two_runs_are_equal(persistent):
    first, second = two_passes(persistent_workers=persistent), two_passes(persistent_workers=persistent)
    for a, b in zip(first, second, strict=True):
        assert [batch[:4] for batch in a] == [batch[:4] for batch in b]
        assert sorted(x for batch in a for (x,) in batch[0]) == list(range(11))
    assert [batch[1] for batch in first[0]] != [batch[1] for batch in first[1]], "each pass draws other numbers"
    pids = [{p for batch in a for p in batch[4]} for a in first]
    assert os.getpid() not in pids[0] | pids[1]
    assert (pids[0] == pids[1]) == persistent


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"shuffle": True}, {"batch_size": None}, {"prefetch_factor": 1}])
def test_the_same_batches_as_without_workers(options):
    def batches(**more):
        g = torch.Generator().manual_seed(3)
        return list(DataLoader(data, **{"batch_size": 4, **options, "generator": g, **more}))

    data = TensorDataset(torch.arange(30.0).reshape(15, 2), torch.arange(15))
    plain = {k: v for k, v in options.items() if k != "prefetch_factor"}
    alone = list(DataLoader(data, **{"batch_size": 4, **plain, "generator": torch.Generator().manual_seed(3)}))
    together = batches(num_workers=3)
    assert len(alone) == len(together)
    if not options.get("shuffle"):
        assert all(torch.equal(a, b) for x, y in zip(alone, together, strict=True) for a, b in zip(x, y, strict=True))
    assert all(torch.equal(a, b) for x, y in zip(together, batches(num_workers=3), strict=True) for a, b in zip(x, y, strict=True))
    if not options:
        assert sorted(x for _, b in batches(num_workers=2, in_order=False) for x in b.tolist()) == list(range(15))


def test_iterable_data_sets():
    assert [b.tolist() for b in DataLoader(Counted(), 3, num_workers=2)] == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    assert [b.tolist() for b in DataLoader(Counted(), 3, num_workers=2, drop_last=True)] == [[0, 2, 4], [1, 3, 5]]
    assert list(DataLoader(Counted(), None, num_workers=3)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [b.tolist() for b in DataLoader(Counted(), 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (len(DataLoader(Counted(), 4)), len(DataLoader(Counted(), 4, drop_last=True))) == (3, 2)
    loader = DataLoader(Counted(), 3, num_workers=2, persistent_workers=True)
    assert [b.tolist() for b in loader] == [b.tolist() for b in loader]
    assert [b.tolist() for b in DataLoader(Counted() + Counted(), 7)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]


def test_what_workers_are_told():
    told = []

    class Told(Drawn):
        def __getitem__(self, i):
            info = get_worker_info()
            return info.id, info.num_workers, info.seed - info.id, told[0], info.dataset is self

    found = [x for batch in DataLoader(Told(), 2, num_workers=2, worker_init_fn=told.append) for x in zip(*batch, strict=True)]
    assert {tuple(int(v) for v in x[:2]) for x in found} == {(0, 2), (1, 2)}
    assert all(int(x[0]) == int(x[3]) and x[4] for x in found)
    assert len({int(x[2]) for x in found}) == 1
    assert get_worker_info() is None
    assert told == []


class Troubled(Drawn):
    def __init__(self, trouble):
        self.trouble = trouble

    def __getitem__(self, i):
        if i == 5:
            return self.trouble()
        return i


def fail():
    raise KeyError("five")


def test_an_error_in_a_worker_is_raised_here():
    loader = DataLoader(Troubled(fail), 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(KeyError, match=r"Caught KeyError in DataLoader worker process 0(.|\n)*Original Traceback(.|\n)*five"):
            list(loader)
    with pytest.raises(Exception, match="Caught"):
        list(DataLoader(Troubled(lambda: lambda: 0), None, num_workers=2))
    with pytest.raises(ZeroDivisionError, match="Caught"):
        list(DataLoader(Drawn(), num_workers=1, worker_init_fn=lambda number: 1 / 0))


def test_a_worker_that_dies_and_one_that_is_late():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Troubled(lambda: os._exit(3)), 2, num_workers=2))
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(DataLoader(Troubled(lambda: time.sleep(60)), 2, num_workers=2, timeout=0.2))


def test_a_pass_that_is_not_finished():
    loader = DataLoader(Drawn(), 2, num_workers=2, persistent_workers=True)
    first = iter(loader)
    next(first)
    assert len(list(loader)) == 6
    with pytest.raises(RuntimeError, match="another pass"):
        next(first)
    pool = loader._pool
    processes = list(pool.processes)
    del loader, pool, first
    assert not any(p.is_alive() for p in processes)
    batches = iter(DataLoader(Drawn(), 2, num_workers=1))
    next(batches)
    batches.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "non-negative"),
        ({"timeout": -1}, "non-negative"),
        ({"prefetch_factor": 2}, "multiprocessing"),
        ({"prefetch_factor": 0, "num_workers": 1}, "positive"),
        ({"persistent_workers": True}, "num_workers > 0"),
        ({"multiprocessing_context": "spawn"}, "multi-process loading"),
    ],
)
def test_options_that_contradict_each_other(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Drawn(), **options)


PROGRAM = """
    import sys, time
    import fnad.torch as torch
    from fnad.torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 10**6

        def __getitem__(self, i):
            time.sleep(0.002)
            return torch.zeros(2000)

    if __name__ == "__main__":
        loader = DataLoader(Slow(), 8, num_workers=2, persistent_workers=True, multiprocessing_context=sys.argv[1])
        batches = iter(loader)
        next(batches)
        try:
            print("begun", *[p.pid for p in loader._pool.processes], flush=True)
            for batch in batches:
                pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(len([b for b, _ in zip(loader, range(3))]), flush=True)
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc, and sends signals")
@pytest.mark.parametrize(
    ("context", "ending"), [("fork", signal.SIGINT), ("fork", signal.SIGKILL), pytest.param("spawn", signal.SIGINT, marks=pytest.mark.slow)]
)
def test_workers_end_with_the_process_that_asks(tmp_path, context, ending):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    process = subprocess.Popen([sys.executable, str(path), context], stdout=subprocess.PIPE, text=True, start_new_session=True)
    _, *pids = process.stdout.readline().split()
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)  # what Ctrl-C does: all processes are told
        assert process.communicate(timeout=60)[0] == "interrupted\n3\n"
        assert process.returncode == 0
    else:
        process.kill()
        process.communicate()
    for _ in range(200):
        if not any(map(alive, pids)):
            break
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_data_sets_side_by_side():
    a, b = TensorDataset(torch.arange(3)), TensorDataset(torch.arange(3) * 2)
    assert StackDataset(a, b)[1][1][0].item() == 2
    assert StackDataset(x=a, y=b)[2]["y"][0].item() == 4
    assert len(StackDataset(a, b)) == 3
    with pytest.raises(ValueError, match="Size mismatch"):
        StackDataset(a, TensorDataset(torch.arange(4)))
