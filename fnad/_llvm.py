"""The only file that imports llvmlite's bindings: from printed modules to machine code, and from machine code to addresses.

numba's own compiler is not needed for that, so a process that only runs compiled programs does not wait for its import.
"""

from __future__ import annotations

import functools
import importlib
import platform
from typing import Any

from fnad import _fork

_lock = _fork.lock(4)  # LLVM compiles for one thread at a time


@functools.cache
def _binding() -> Any:
    binding = importlib.import_module("llvmlite.binding")
    if binding_version() < (0, 45):
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def binding_version() -> tuple[int, ...]:
    version: str = importlib.import_module("llvmlite").__version__
    return tuple(int(n) for n in version.split(".")[:2])


@functools.cache
def host() -> tuple[str, str]:
    """The processor that code is made for: its name and what it can do."""
    binding = _binding()
    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot tell on this platform
        features = ""
    return binding.get_host_cpu_name(), features


def _target() -> Any:
    cpu, features = host()
    static = platform.machine().lower() in ("x86_64", "amd64", "i686")
    return (
        _binding()
        .Target.from_default_triple()
        .create_target_machine(cpu=cpu, features=features, opt=2, reloc="static" if static else "default", jit=True)
    )


@functools.cache
def _engine() -> Any:
    binding = _binding()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), _target())


def _usual_passes(builder: Any) -> Any:
    return builder.getModulePassManager()


def _few_passes(builder: Any) -> Any:
    passes = _binding().create_new_module_pass_manager()
    names = [f"add_{name}_pass" for name in ("sroa", "simplify_cfg", "new_gvn", "instruction_combine")]
    if not all(hasattr(passes, name) for name in names):  # an older llvmlite
        return _usual_passes(builder)
    for name in names:
        getattr(passes, name)()
    return passes


def optimize(text: str, loops: bool = True) -> tuple[Any, Any]:
    """A module in LLVM's language after optimisation, and the machine that it is for.

    `loops`: turn loops over scalars into loops over vectors. Where they are already, or are short, a few passes make code that is as
    fast in an eighth of the time.
    """
    binding = _binding()
    with _lock:
        module = binding.parse_assembly(text)
        module.triple = binding.get_process_triple()
        target = _target()
        options = binding.create_pipeline_tuning_options(2)
        options.loop_vectorization = loops
        options.loop_unrolling = False  # but for loops that are marked
        options.slp_vectorization = False  # costs time to compile; the loops that matter are vectorised as loops
        builder = binding.create_pass_builder(target, options)
        (_usual_passes(builder) if loops else _few_passes(builder)).run(module, builder)
        return module, target


def machine_code(text: str, loops: bool = True) -> bytes:
    """The object file of a module in LLVM's language, optimised for this machine."""
    with _lock:
        module, target = optimize(text, loops)
        code: bytes = target.emit_object(module)
        return code


def assembly(text: str) -> str:
    """The same as assembly, to look at."""
    with _lock:
        module, target = optimize(text)
        shown: str = target.emit_assembly(module)
        return shown


def load(code: bytes, name: str) -> int:
    """Put machine code into this process for good; the address of one of its functions."""
    with _lock:
        engine = _engine()
        engine.add_object_file(_binding().object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = int(engine.get_function_address(name))
    if not address:
        raise RuntimeError(f"LLVM did not find {name} in the code it made")
    return address


def name_symbol(name: str, address: int) -> None:
    """Let native code call what lies at an address."""
    binding = _binding()
    if not binding.address_of_symbol(name):
        binding.add_symbol(name, address)


def version() -> str:
    """What machine code depends on besides the text that it is made from."""
    return f"llvmlite {importlib.import_module('llvmlite').__version__} {' '.join(host())}"
