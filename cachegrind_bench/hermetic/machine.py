"""The machine: what of it reaches a program under Valgrind (`machine_fields`), and what may explain a surprise.

Reads /proc, /sys and a few files of /etc; whatever is absent or unreadable is left out. Starts no program.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

# Valgrind shows every program one fixed CPU, less what the host lacks. x86-64: VEX's guest_amd64_helpers.c (CPUID);
# AArch64: ARM64_SUPPORTED_HWCAP in coregrind's initimg-linux.c, the mask over the host's AT_HWCAP.
_FEATURES = {
    "x86_64": ("avx2", "f16c", "rdrand", "rdseed"),
    "aarch64": ("aes", "asimddp", "atomics", "crc32", "pmull", "sha1", "sha2"),
}
_ARM_VENDORS = {
    "0x41": "ARM", "0x42": "Broadcom", "0x46": "Fujitsu", "0x48": "HiSilicon", "0x4e": "NVIDIA", "0x51": "Qualcomm",
    "0x61": "Apple", "0x6d": "Microsoft", "0xc0": "Ampere",
}  # fmt: skip
# The variable that identifies a CI service, its name, and the variable that names its runner's image or kind.
_SERVICES = (
    ("GITHUB_ACTIONS", "GitHub Actions", "ImageOS"),
    ("GITLAB_CI", "GitLab CI", "CI_RUNNER_DESCRIPTION"),
    ("GITEA_ACTIONS", "Gitea Actions", "RUNNER_OS"),
    ("BUILDKITE", "Buildkite", "BUILDKITE_AGENT_NAME"),
    ("CIRCLECI", "CircleCI", "CIRCLE_JOB"),
    ("TF_BUILD", "Azure Pipelines", "ImageOS"),
    ("CIRRUS_CI", "Cirrus CI", "CIRRUS_OS"),
    ("TRAVIS", "Travis CI", "TRAVIS_DIST"),
    ("DRONE", "Drone", "DRONE_STAGE_NAME"),
    ("BITBUCKET_BUILD_NUMBER", "Bitbucket Pipelines", ""),
    ("CODEBUILD_BUILD_ID", "AWS CodeBuild", "CODEBUILD_BUILD_IMAGE"),
    ("JENKINS_URL", "Jenkins", "NODE_NAME"),
    ("TEAMCITY_VERSION", "TeamCity", ""),
    ("CI", "unknown", ""),
)
_CPU_SENSORS = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "x86_pkg_temp"}
_CPU = "sys/devices/system/cpu"


def machine_fields(*, read_root: Path = Path("/"), architecture: str | None = None) -> dict[str, str]:
    """Return what of the machine changes event counts: the architecture, and CPU features as yes, no or unknown."""
    architecture = architecture or os.uname().machine
    cpu = _cpuinfo(read_root)
    flags = set((cpu.get("flags") or cpu.get("Features") or "").split())
    absent = "no" if flags else "unknown"
    features = _FEATURES.get(architecture, ())
    return {"architecture": architecture, **{name: "yes" if name in flags else absent for name in features}}


def machine_info(environ: Mapping[str, str], *, read_root: Path = Path("/")) -> dict[str, str | int]:
    """Describe the machine in texts and whole numbers; the unit is part of a name. Keys without an answer are absent."""
    cpu = _cpuinfo(read_root)
    found = {
        **_processor(read_root, cpu),
        **_frequency(read_root),
        **_memory_and_load(read_root),
        **_system(read_root),
        "container": container_kind(environ, read_root),
        "virtualization": _virtualization(cpu, read_root),
        **_service(environ),
    }
    return {name: value for name, value in sorted(found.items()) if value is not None and value != ""}


def _processor(root: Path, cpu: Mapping[str, str]) -> dict[str, str | int | None]:
    part = f"part {cpu['CPU part']} revision {cpu.get('CPU revision', '?')}" if "CPU part" in cpu else None
    vendor = cpu.get("CPU implementer", "")
    nodes = [path for path in _children(root / "sys/devices/system/node") if re.fullmatch(r"node\d+", path.name)]
    online = _read(root / _CPU / "online")
    allowed = sorted(os.sched_getaffinity(0))
    return {
        "cpu_model": cpu.get("model name", part),
        "cpu_vendor": cpu.get("vendor_id", _ARM_VENDORS.get(vendor, vendor)),
        "cpu_microcode": cpu.get("microcode"),
        "cpu_stepping": cpu.get("stepping"),
        "cpus_online": len(_parse_list(online)) if online else None,
        "cpus_allowed": _format_list(allowed),
        "cpus_isolated": _read(root / _CPU / "isolated"),
        "numa_nodes": len(nodes) or None,
        "smt": {"0": "off", "1": "on"}.get(_read(root / _CPU / "smt/active")),
        "temperature_millidegrees": _temperature(root),
    }


def _frequency(root: Path) -> dict[str, str | int | None]:
    policy = root / _CPU / "cpu0/cpufreq"
    # Each driver has its own switch, and Intel's says the opposite.
    no_turbo, boost = _read(root / _CPU / "intel_pstate/no_turbo"), _read(root / _CPU / "cpufreq/boost")
    current = number_in(policy / "scaling_cur_freq")
    if current is None and (mhz := re.fullmatch(r"(\d{1,9})(?:\.(\d{1,3})\d*)?", _cpuinfo(root).get("cpu MHz", ""))):
        current = int(mhz[1]) * 1000 + int((mhz[2] or "").ljust(3, "0"))
    return {
        "cpu_khz": current,
        "cpu_khz_min": number_in(policy / "scaling_min_freq"),
        "cpu_khz_max": number_in(policy / "scaling_max_freq"),
        "cpu_governor": _read(policy / "scaling_governor"),
        "cpu_driver": _read(policy / "scaling_driver"),
        "turbo": {"0": "on", "1": "off"}.get(no_turbo) or {"0": "off", "1": "on"}.get(boost),
    }


def _memory_and_load(root: Path) -> dict[str, str | int | None]:
    memory = dict(re.findall(r"^(\w+):\s+(\d{1,15}) kB$", _read(root / "proc/meminfo"), re.MULTILINE))
    mib = {name: int(memory[name]) // 1024 if name in memory else None for name in ("MemTotal", "MemAvailable")}
    load = re.match(r"(\d{1,9})\.(\d\d) (\d{1,9})\.(\d\d) (\d{1,9})\.(\d\d) ", _read(root / "proc/loadavg"))
    uptime = re.match(r"\d{1,12}(?=\.)", _read(root / "proc/uptime"))
    huge = re.search(r"\[(\w+)\]", _read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "load_1min_percent": int(load[1] + load[2]) if load else None,
        "load_5min_percent": int(load[3] + load[4]) if load else None,
        "load_15min_percent": int(load[5] + load[6]) if load else None,
        "memory_mib": mib["MemTotal"],
        "memory_available_mib": mib["MemAvailable"],
        "transparent_hugepages": huge[1] if huge else None,
        "uptime_s": int(uptime[0]) if uptime else None,
    }


def _system(root: Path) -> dict[str, str | int | None]:
    kernel = root / "proc/sys/kernel"
    name = re.search(r"^PRETTY_NAME=(['\"]?)(.*)\1\s*$", _read(root / "etc/os-release"), re.MULTILINE)
    host = _read(kernel / "hostname")
    return {
        "aslr": number_in(kernel / "randomize_va_space"),
        "host": hashlib.sha256(host.encode()).hexdigest()[:12] if host else None,
        "kernel": _read(kernel / "osrelease"),
        "libc": _libc_version(),
        "os": name[2] if name else None,
        "perf_event_paranoid": number_in(kernel / "perf_event_paranoid"),
        "ptrace_scope": number_in(kernel / "yama/ptrace_scope"),
        "python": platform.python_version(),
    }


def container_kind(environ: Mapping[str, str], root: Path = Path("/")) -> str | None:
    """Return which kind of container this is, as far as can be seen."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    # systemd's interface to containers: one word, or a file its manager left. Then the marks of each kind.
    named = _read(root / "run/systemd/container") or environ.get("container", "")
    if re.fullmatch(r"[\w-]{1,32}", named):
        return named
    for place, kind in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if os.path.exists(root / place):
            return kind
    groups = _read(root / "proc/self/cgroup")
    marks = {"kubepods": "kubernetes", "docker": "docker", "libpod": "podman", "lxc": "lxc", "containerd": "containerd"}
    return next((kind for mark, kind in marks.items() if mark in groups), None)


def _virtualization(cpu: Mapping[str, str], root: Path) -> str | None:
    names = (_read(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name"))
    product = " ".join(filter(None, names))
    if "microsoft" in _read(root / "proc/sys/kernel/osrelease").lower():
        return "WSL"
    if "hypervisor" in cpu.get("flags", "").split():
        return product or _read(root / "sys/hypervisor/type") or "yes"
    # Other architectures have no such flag, so the product's name has to do.
    return product if "flags" not in cpu else "none"


def _service(environ: Mapping[str, str]) -> dict[str, str | None]:
    for variable, name, image in _SERVICES:
        if environ.get(variable, "").lower() not in {"", "0", "false"}:
            version = environ.get("ImageVersion", "") if image == "ImageOS" else ""
            return {"ci": name, "ci_image": " ".join(filter(None, (environ.get(image), version)))}
    return {}


def _temperature(root: Path) -> int | None:
    # Only the sensors of CPUs: reading others may take milliseconds each.
    zones = [(path / "type", path / "temp") for path in _children(root / "sys/class/thermal")]
    chips = [(path / "name", path / "temp1_input") for path in _children(root / "sys/class/hwmon")]
    values = [number_in(value) for name, value in (*zones, *chips) if _read(name) in _CPU_SENSORS]
    return max((value for value in values if value is not None), default=None)


def _libc_version() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):  # musl has no such name
        return None


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the values of the first CPU. The kernel makes the text as it is read: ask for no more than that."""
    try:
        with (root / "proc/cpuinfo").open("rb", buffering=0) as stream:
            text = stream.read(16384).decode("utf-8", "backslashreplace")
    except OSError:
        return {}
    return dict(re.findall(r"^([^:\t\n]+?)[ \t]*:[ \t]*(.*?)[ \t]*$", text.partition("\n\n")[0], re.MULTILINE))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "backslashreplace").strip(" \n\t\0")
    except (OSError, ValueError):
        return ""


def number_in(path: Path) -> int | None:
    """Return the whole number that a file of the kernel holds; None without the file, or if it holds anything else."""
    text = _read(path)
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _children(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def _parse_list(text: str) -> list[int]:
    """Read the kernel's list format, as `0-3,8`."""
    ranges = re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", text)
    return [number for first, last in ranges for number in range(int(first), int(last or first) + 1)]


def _format_list(numbers: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
