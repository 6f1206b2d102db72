"""The builder of test traces makes what a run would make."""


def test_a_made_trace_is_frozen_with_steps_final_state_and_files(make_trace):
    page = make_trace.page
    folder = make_trace(
        page("http://a.test/", "One 1", navigate="http://a.test/"),
        page("http://a.test/b", "Two 2", click={"css": "a"}),
        answer="2",
        states={"a.test": "create table t(x); insert into t values (1)"},
        probes={"p": {"x": 1}},
        downloads={"d.csv": b"x,y"},
        files={"out.txt": b"hello"},
    )
    assert [step.index for step in folder.all_steps] == [1, 2, 3]
    assert folder.trace.outcome.answer == "2"
    assert [o.kind for o in folder.trace.final.observations] == [
        "text",
        "state",
        "probe",
        "download",
    ]
    assert (folder.path / "files/out.txt").read_bytes() == b"hello"
