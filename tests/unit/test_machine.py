"""The description of a machine, from made-up /proc and /sys trees and once from the real one."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic.machine import machine_fields, machine_info

if TYPE_CHECKING:
    from pathlib import Path

X86_64 = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz
stepping\t: 7
microcode\t: 0x1
cpu MHz\t\t: 2200.04
flags\t\t: fpu sse2 avx2 rdrand hypervisor
power management:

processor\t: 1
model name\t: another
flags\t\t: fpu rdseed
"""
AARCH64 = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd aes pmull sha1 sha2 crc32 atomics
CPU implementer\t: 0xc0
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xac3
CPU revision\t: 1

"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_features_of_an_x86_64_are_those_of_its_first_cpu(tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/cpuinfo": X86_64})
    assert machine_fields(read_root=root, architecture="x86_64") == {
        "architecture": "x86_64",
        "avx2": "yes",
        "f16c": "no",
        "rdrand": "yes",
        "rdseed": "no",
    }


def test_the_features_of_an_aarch64_are_those_valgrind_lets_through(tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/cpuinfo": AARCH64})
    assert machine_fields(read_root=root, architecture="aarch64") == {
        "architecture": "aarch64",
        "aes": "yes",
        "asimddp": "no",
        "atomics": "yes",
        "crc32": "yes",
        "pmull": "yes",
        "sha1": "yes",
        "sha2": "yes",
    }


def test_features_nobody_can_read_are_unknown_and_not_absent(tmp_path: Path) -> None:
    assert machine_fields(read_root=tmp_path, architecture="x86_64")["avx2"] == "unknown"


def test_an_architecture_without_a_table_is_named_all_the_same(tmp_path: Path) -> None:
    assert machine_fields(read_root=tmp_path, architecture="riscv64") == {"architecture": "riscv64"}


def test_a_rich_machine_is_described_in_texts_and_whole_numbers(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    root = tree(
        tmp_path,
        {
            "proc/cpuinfo": X86_64,
            "proc/loadavg": "1.05 0.30 12.99 1/234 5678\n",
            "proc/uptime": "12345.67 23456.78\n",
            "proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\nMemAvailable:    8192000 kB\nHugePages_Total: 0\n",
            "proc/sys/kernel/hostname": "runner-17\n",
            "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
            "proc/sys/kernel/randomize_va_space": "2\n",
            "proc/sys/kernel/perf_event_paranoid": "-1\n",
            "proc/sys/kernel/yama/ptrace_scope": "1\n",
            "etc/os-release": 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            f"{cpu}/online": "0-3,8\n",
            f"{cpu}/isolated": "\n",
            f"{cpu}/smt/active": "1\n",
            f"{cpu}/intel_pstate/no_turbo": "1\n",
            f"{cpu}/cpu0/cpufreq/scaling_cur_freq": "1900000\n",
            f"{cpu}/cpu0/cpufreq/scaling_min_freq": "800000\n",
            f"{cpu}/cpu0/cpufreq/scaling_max_freq": "3600000\n",
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{cpu}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
            "sys/devices/system/node/node0/x": "",
            "sys/devices/system/node/node1/x": "",
            "sys/devices/system/node/possible": "0-1\n",
            "sys/class/dmi/id/sys_vendor": "Google\n",
            "sys/class/dmi/id/product_name": "Google Compute Engine\n",
            "sys/class/thermal/thermal_zone0/type": "acpitz\n",
            "sys/class/thermal/thermal_zone0/temp": "99000\n",
            "sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
            "sys/class/thermal/thermal_zone1/temp": "51000\n",
            "sys/class/hwmon/hwmon0/name": "coretemp\n",
            "sys/class/hwmon/hwmon0/temp1_input": "52000\n",
        },
    )
    info = machine_info({}, read_root=root)
    for name in ("cpus_allowed", "libc", "python"):
        assert info.pop(name, None) != ""
    assert info == {
        "aslr": 2,
        "cpu_driver": "intel_pstate",
        "cpu_governor": "powersave",
        "cpu_khz": 1900000,
        "cpu_khz_max": 3600000,
        "cpu_khz_min": 800000,
        "cpu_microcode": "0x1",
        "cpu_model": "Intel(R) Xeon(R) CPU @ 2.20GHz",
        "cpu_stepping": "7",
        "cpu_vendor": "GenuineIntel",
        "cpus_online": 5,
        "host": hashlib.sha256(b"runner-17").hexdigest()[:12],
        "kernel": "6.1.0-13-amd64",
        "load_15min_percent": 1299,
        "load_1min_percent": 105,
        "load_5min_percent": 30,
        "memory_available_mib": 8000,
        "memory_mib": 16000,
        "numa_nodes": 2,
        "os": "Debian GNU/Linux 12 (bookworm)",
        "perf_event_paranoid": -1,
        "ptrace_scope": 1,
        "smt": "on",
        "temperature_millidegrees": 52000,
        "transparent_hugepages": "madvise",
        "turbo": "off",
        "uptime_s": 12345,
        "virtualization": "Google Google Compute Engine",
    }
    assert list(info) == sorted(info)


def test_the_host_is_told_apart_but_not_named(tmp_path: Path) -> None:
    one = machine_info({}, read_root=tree(tmp_path / "1", {"proc/sys/kernel/hostname": "secret-name\n"}))
    two = machine_info({}, read_root=tree(tmp_path / "2", {"proc/sys/kernel/hostname": "other-name\n"}))
    assert "secret" not in str(one)
    assert one["host"] != two["host"]
    assert len(str(one["host"])) == 12


def test_a_machine_that_says_nothing_is_described_by_what_python_knows(tmp_path: Path) -> None:
    info = machine_info({}, read_root=tmp_path)
    assert set(info) <= {"cpus_allowed", "libc", "python"}


def test_an_arm_processor_is_named_by_its_numbers(tmp_path: Path) -> None:
    info = machine_info({}, read_root=tree(tmp_path, {"proc/cpuinfo": AARCH64}))
    assert (info["cpu_vendor"], info["cpu_model"]) == ("Ampere", "part 0xac3 revision 1")


def test_the_frequency_comes_from_cpuinfo_where_the_kernel_does_not_scale_it(tmp_path: Path) -> None:
    assert machine_info({}, read_root=tree(tmp_path, {"proc/cpuinfo": X86_64}))["cpu_khz"] == 2200040


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"intel_pstate/no_turbo": "0"}, "on"),
        ({"intel_pstate/no_turbo": "1"}, "off"),
        ({"cpufreq/boost": "1"}, "on"),
        ({"cpufreq/boost": "0"}, "off"),
        ({"cpufreq/boost": "nonsense"}, None),
        ({}, None),
    ],
)
def test_turbo_and_boost_are_one_thing(tmp_path: Path, files: dict[str, str], state: str | None) -> None:
    root = tree(tmp_path, {f"sys/devices/system/cpu/{name}": text for name, text in files.items()})
    assert machine_info({}, read_root=root).get("turbo") == state


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": "engine=podman\n"}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({}, {"container": "oci"}, "oci"),
        ({}, {"container": "some <text> with spaces"}, None),
        ({"proc/self/cgroup": "0::/kubepods/besteffort/pod1\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "4:memory:/docker/0123\n"}, {}, "docker"),
        ({"proc/self/cgroup": "4:memory:/lxc/name\n"}, {}, "lxc"),
        ({"proc/self/cgroup": "0::/user.slice\n"}, {}, None),
    ],
)
def test_containers_are_known_by_their_marks(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str | None
) -> None:
    assert machine_info(environ, read_root=tree(tmp_path, files)).get("container") == kind


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"proc/cpuinfo": X86_64}, "yes"),
        ({"proc/cpuinfo": X86_64, "sys/hypervisor/type": "xen\n"}, "xen"),
        ({"proc/cpuinfo": X86_64.replace("hypervisor", "")}, "none"),
        ({"proc/cpuinfo": X86_64, "proc/sys/kernel/osrelease": "5.15-microsoft-standard-WSL2\n"}, "WSL"),
        ({"proc/cpuinfo": AARCH64}, None),
        ({"proc/cpuinfo": AARCH64, "sys/class/dmi/id/product_name": "c7g.large\n"}, "c7g.large"),
    ],
)
def test_virtual_machines_are_known_by_their_marks(tmp_path: Path, files: dict[str, str], kind: str | None) -> None:
    assert machine_info({}, read_root=tree(tmp_path, files)).get("virtualization") == kind


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (None, None)),
        ({"CI": "false"}, (None, None)),
        ({"CI": "true"}, ("unknown", None)),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, ("GitHub Actions", None)),
        (
            {"GITHUB_ACTIONS": "true", "ImageOS": "ubuntu22", "ImageVersion": "20240101.1"},
            ("GitHub Actions", "ubuntu22 20240101.1"),
        ),
        ({"CI": "true", "GITLAB_CI": "true", "CI_RUNNER_DESCRIPTION": "big"}, ("GitLab CI", "big")),
        ({"JENKINS_URL": "https://ci.example/", "NODE_NAME": "agent-1"}, ("Jenkins", "agent-1")),
    ],
)
def test_the_ci_service_is_named_with_its_image(
    tmp_path: Path, environ: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    info = machine_info(environ, read_root=tmp_path)
    assert (info.get("ci"), info.get("ci_image")) == expected


def test_nonsense_in_every_file_is_left_out(tmp_path: Path) -> None:
    names = [
        "proc/cpuinfo",
        "proc/loadavg",
        "proc/uptime",
        "proc/meminfo",
        "proc/sys/kernel/randomize_va_space",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
        "sys/class/hwmon/hwmon0/temp1_input",
    ]
    for nonsense in ("", ":::\n", "-1.x y z"):
        info = machine_info({}, read_root=tree(tmp_path, dict.fromkeys(names, nonsense)))
        assert all(isinstance(value, str) or abs(value) < 1 << 63 for value in info.values())
    (tmp_path / "proc/cpuinfo").write_bytes(b"model name\t: caf\xe9\n")
    assert machine_info({}, read_root=tmp_path)["cpu_model"] == "caf\\xe9"
    (tmp_path / "proc/loadavg").unlink()
    (tmp_path / "proc/loadavg").mkdir()
    assert "load_1min_percent" not in machine_info({}, read_root=tmp_path)


def test_the_real_machine_is_described_in_a_moment() -> None:
    info = machine_info(dict(os.environ))
    fields = machine_fields()
    assert fields["architecture"] == os.uname().machine
    assert set(fields.values()) - {fields["architecture"]} <= {"yes", "no"}
    assert info["kernel"] == os.uname().release
    assert isinstance(info["memory_mib"], int)
    assert all(type(value) in {int, str} for value in info.values())
