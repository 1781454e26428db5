"""Raises in every hook that is called after discovery."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.DECODER, "observed", "Works", "bad_observers.decoder:Decoder")]


@hookimpl
def oasr_commands():
    raise RuntimeError("no commands today")


@hookimpl
def oasr_doctor():
    return "not a list of checks"


@hookimpl
def oasr_engine_started(info):
    raise RuntimeError("no engine today")


@hookimpl
def oasr_engine_stopped(info):
    raise RuntimeError("no engine today")


@hookimpl
def oasr_request_finished(outcome):
    raise RuntimeError("no request today")


@hookimpl
def oasr_step_finished(stats):
    raise RuntimeError("no step today")
