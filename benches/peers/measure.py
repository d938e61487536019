"""Measures gyrus beside other agents: the same steps, the same provider, in turns.

    measure.py [--rounds N] [--steps N] [PEER …]

Prints a Markdown table. See README.md beside this file for what is measured and how.
"""

import argparse
import ctypes
import errno
import glob
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from provider import Conversation, Provider, command

HERE = pathlib.Path(__file__).resolve().parent
PEERS = pathlib.Path(os.environ.get("GYRUS_PEERS", "~/.cache/gyrus-peers")).expanduser()
GYRUS = pathlib.Path(
    os.environ.get("GYRUS_BINARY", HERE.parent.parent / "target/dist/gyrus")
).resolve()
# One for all its runs, as a person has it: the first command after a boot also proves the sandbox.
GYRUS_HOME = pathlib.Path(tempfile.mkdtemp(prefix="peers-gyrus-"))
GOAL = "Run the commands that you are told to run, one after the other."
LIMIT_SECONDS = 300
# More of the machine than this used by others, in cores, and a run is measured again.
FOREIGN_CORES = 0.2
MAX_TRIES = 5


def gyrus(base_url, place):
    return {
        "argv": [str(GYRUS), "run", GOAL, "--model", f"{base_url}#m"]
        + ["--approve", "auto", "--workdir", f"{place}/work"],
        "environment": {"GYRUS_HOME": str(GYRUS_HOME)},
    }


def gyrus_unconfined(base_url, place):
    """As the others run commands: with all the rights of whoever started the agent."""
    how = gyrus(base_url, place)
    return {**how, "argv": how["argv"] + ["--sandbox", "off"]}


def langgraph(base_url, place):
    return {
        "argv": [f"{PEERS}/venv/bin/python", str(HERE / "langgraph_agent.py")]
        + [base_url, f"{place}/work", f"{place}/checkpoints.sqlite", GOAL],
        "environment": {},
    }


def codex(base_url, place):
    # The program itself: the `codex` that npm installs is a script for Node that starts it.
    program = glob.glob(f"{PEERS}/npm/node_modules/@openai/codex-*/vendor/*/bin/codex")[0]
    # Not below the temporary folder: it refuses helper programs there.
    home = PEERS / "codex-home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    home.joinpath("config.toml").write_text(
        'model = "m"\nmodel_provider = "local"\ncheck_for_update_on_startup = false\n'
        "[analytics]\nenabled = false\n"
        "[model_providers.local]\n"
        f'name = "local"\nbase_url = "{base_url}"\nwire_api = "responses"\n'
        'env_key = "PEER_KEY"\n'
    )
    return {
        "argv": [program, "exec", "--dangerously-bypass-approvals-and-sandbox"]
        + ["--skip-git-repo-check", "-C", f"{place}/work", GOAL],
        "environment": {"HOME": str(home), "CODEX_HOME": str(home), "PEER_KEY": "none"},
    }


AGENTS = {"gyrus": gyrus, "gyrus-unconfined": gyrus_unconfined, "langgraph": langgraph, "codex": codex}


def busy_seconds():
    """CPU time of the whole machine since it started, without idling and waiting for disks."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until_quiet():
    since = time.monotonic()
    while time.monotonic() - since < LIMIT_SECONDS:
        before = busy_seconds()
        time.sleep(1)  # The length of the observation.
        if busy_seconds() - before < FOREIGN_CORES / 2:
            return
    sys.exit(f"the machine was busy for {LIMIT_SECONDS} seconds; measure when it is not")


def start(agent, base_url, place, prefix):
    """Starts an agent in the folder `place`."""
    (place / "work").mkdir()
    how = agent(base_url, place)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "C.UTF-8",
        **how["environment"],
    }
    with open(place / "output", "wb") as output:
        return subprocess.Popen(
            prefix + how["argv"],
            cwd=place / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def adopt_orphans():
    """What an agent leaves behind becomes our child, so that its time counts too."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
        raise OSError(ctypes.get_errno(), "prctl")


def wait_for_orphans():
    """Seconds of CPU of what an agent left behind, with all that they had waited for."""
    seconds = 0
    while True:
        try:
            _, _, used = os.wait3(0)
        except ChildProcessError:
            return seconds
        seconds += used.ru_utime + used.ru_stime


def measure(provider, name, steps):
    """One run: seconds of CPU, seconds, peak memory in MB, seconds from first to last request."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))
    try:
        conversation = Conversation(steps)
        base_url = provider.begin(name, conversation)
        busy, own, since = busy_seconds(), time.process_time(), time.monotonic()
        # `time` is small: what starts a program leaves it its own size as its peak.
        prefix = ["/usr/bin/time", "--output", f"{place}/peak", "--format", "%M", "--quiet"]
        child = start(AGENTS[name], base_url, place, prefix)
        watchdog = threading.Timer(LIMIT_SECONDS, child.kill)
        watchdog.start()
        _, status, used = os.wait4(child.pid, 0)
        watchdog.cancel()
        orphans = wait_for_orphans()
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - since
        cpu = used.ru_utime + used.ru_stime + orphans
        others = busy_seconds() - busy - cpu - (time.process_time() - own)
        asked = conversation.asked_at
        if child.returncode or conversation.errors or len(asked) != steps + 1:
            output = (place / "output").read_text(errors="replace")[-2000:]
            sys.exit(
                f"{name} ended with {child.returncode} after {len(asked)} requests; "
                f"{conversation.errors[:3]}\n{output}"
            )
        peak = int((place / "peak").read_text()) / 1024
        return {
            "cpu": cpu,
            "wall": wall,
            "peak": peak,
            "asking": asked[-1] - asked[0],
            "foreign": others / wall,
        }
    finally:
        shutil.rmtree(place)


def measure_quietly(provider, name, steps):
    """As `measure`, again if anything else was busy on the machine."""
    for _ in range(MAX_TRIES):
        wait_until_quiet()
        found = measure(provider, name, steps)
        note = f"{name}, {steps} steps: " + ", ".join(f"{k} {v:.3f}" for k, v in found.items())
        if found["foreign"] < FOREIGN_CORES:
            print(note, file=sys.stderr)
            return found
        print(note + ": not alone, it does not count", file=sys.stderr)
    sys.exit("something else is busy on this machine; measure when nothing is")


def shell_seconds(steps):
    """CPU of the commands alone: what a step costs at least, whoever takes it."""
    used = 0
    for step in range(steps):
        argv = ["bash", "-c", f"{command(step)} > /dev/null"]
        child = os.posix_spawnp("bash", argv, {"PATH": os.environ["PATH"]})
        usage = os.wait4(child, 0)[2]
        used += usage.ru_utime + usage.ru_stime
    return used


def keepers(provider):
    """Memory of gyrus and the keeper processes of a command, while the command runs."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))
    try:
        held = Conversation(1, lambda _: "read -r line < gate || true")
        base_url = provider.begin("keepers", held)
        child = start(gyrus_with_gate, base_url, place, [])
        watchdog = threading.Timer(LIMIT_SECONDS, child.kill)
        watchdog.start()
        gate = open_for_reader(place / "work/gate", child)
        rows = [memory(process) for process in descendants(child.pid)] if gate else []
        if gate:
            os.close(gate)
        failed = child.wait()
        watchdog.cancel()
        if failed or not gate:
            sys.exit(f"gyrus ended with {failed}\n{(place / 'output').read_text()}")
        return rows
    finally:
        shutil.rmtree(place)


def open_for_reader(gate, child):
    """The writing end of a FIFO once somebody reads it, or `None` if the child ends before."""
    while child.poll() is None:
        try:
            return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            time.sleep(0.005)  # A FIFO cannot be watched for readers.
    return None


def gyrus_with_gate(base_url, place):
    os.mkfifo(place / "work/gate")
    return gyrus(base_url, place)


def descendants(process):
    """A process and all below it."""
    found = [process]
    for children in glob.glob(f"/proc/{process}/task/*/children"):
        for child in pathlib.Path(children).read_text().split():
            found += descendants(int(child))
    return found


def memory(process):
    """Name, peak resident set, and the share of it that is its own, in MB."""
    about = pathlib.Path(f"/proc/{process}")
    fields = dict(
        line.split(":", 1)
        for file in ("status", "smaps_rollup")
        for line in (about / file).read_text().splitlines()
        if ":" in line
    )
    megabytes = [int(fields[field].split()[0]) / 1024 for field in ("VmHWM", "Pss")]
    return fields["Name"].strip(), *megabytes


def table(found, shell, steps):
    """The medians, and what gyrus' are of them."""

    def median(name, value):
        return statistics.median(value(*pair) for pair in found[name])

    columns = {
        "CPU a step, ms": lambda idle, full: (full["cpu"] - idle["cpu"]) / steps * 1e3,
        "CPU a step beyond bash, ms": lambda idle, full: (
            (full["cpu"] - idle["cpu"] - shell) / steps * 1e3
        ),
        "CPU a step with its share of the start, ms": lambda idle, full: (
            full["cpu"] / steps * 1e3
        ),
        "CPU of a run without a step, ms": lambda idle, full: idle["cpu"] * 1e3,
        "wall a step, ms": lambda idle, full: full["asking"] / steps * 1e3,
        "the whole run, s": lambda idle, full: full["wall"],
        "peak memory, MB": lambda idle, full: full["peak"],
    }
    names = list(found)
    print("| median of a run of", steps, "shell steps |", " | ".join(names), "|")
    print("| --- |" + " --- |" * len(names))
    for title, value in columns.items():
        figures = {name: median(name, value) for name in names}
        cells = []
        for name in names:
            cell = f"{figures[name]:.2f}"
            if name != "gyrus" and figures.get("gyrus", 0) > 0:
                cell += f" ({figures[name] / figures['gyrus']:.1f}×)"
            cells.append(cell)
        print(f"| {title} |", " | ".join(cells), "|")
    print(f"\nThe commands alone, run by nobody: {shell / steps * 1e3:.2f} ms of CPU each.")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=50)
    arguments.add_argument("peer", nargs="*", default=list(AGENTS))
    given = arguments.parse_args()
    adopt_orphans()
    provider = Provider()
    found = {name: [] for name in given.peer}
    shell = []
    measure(provider, "gyrus", 1)
    for _ in range(given.rounds):
        wait_until_quiet()
        shell.append(shell_seconds(given.steps))
        for name in given.peer:
            runs = [measure_quietly(provider, name, steps) for steps in (0, given.steps)]
            found[name].append(runs)
    table(found, statistics.median(shell), given.steps)
    if "gyrus" in found:
        print("\nWhile a command runs (peak resident set, proportional share, in MB):")
        for name, peak, share in keepers(provider):
            print(f"- {name}: {peak:.1f}, {share:.1f}")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(GYRUS_HOME)
