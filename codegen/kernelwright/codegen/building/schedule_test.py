from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.schedule import Experience, urgencies


def action(name: str, seconds: float, *inputs: str) -> Action:
    return Action(name, name, ("true",), inputs, (name,), seconds=seconds)


def test_an_action_is_as_urgent_as_the_longest_road_behind_it() -> None:
    compile_long, compile_short = action("a", 9), action("b", 1)
    assemble, link = action("c", 2, "a"), action("d", 4, "c", "b", "rendered")
    actions = [link, assemble, compile_short, compile_long]
    by_action = urgencies(actions, {one: one.seconds for one in actions})
    assert by_action == {compile_long: 15, assemble: 6, compile_short: 5, link: 4}


@given(st.lists(st.tuples(st.integers(1, 9), st.lists(st.integers(0, 30), max_size=3)), min_size=1, max_size=30))
def test_nothing_is_more_urgent_than_what_it_waits_for(drawn: list[tuple[int, list[int]]]) -> None:
    actions = []
    for index, (seconds, inputs) in enumerate(drawn):
        actions.append(action(str(index), seconds, *{str(one) for one in inputs if one < index}))
    by_action = urgencies(list(reversed(actions)), {one: one.seconds for one in actions})
    by_name = {one.id: one for one in actions}
    for one in actions:
        behind = [by_action[user] for user in actions if one.id in user.inputs]
        assert by_action[one] == one.seconds + max(behind, default=0)
        assert all(by_action[by_name[path]] > by_action[one] for path in one.inputs)


def test_a_cycle_is_ordered_somehow() -> None:
    actions = [action("a", 1, "b"), action("b", 1, "a")]
    assert set(urgencies(actions, {one: 1 for one in actions})) == set(actions)


def test_experience_outweighs_the_estimate(tmp_path: Path) -> None:
    experience = Experience(tmp_path / "seconds")
    known = action("a", 9)
    assert experience.seconds(known) == 9
    experience.record(known, 2.25)
    assert experience.seconds(known) == 2.25
    for path in (tmp_path / "seconds").iterdir():
        path.write_text("")
    assert experience.seconds(known) == 9
