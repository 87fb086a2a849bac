"""What Prometheus is told."""

from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.served import Serve, Served


async def samples(served: Served) -> dict[str, float]:
    answer = await served.nobody.get("/metrics")
    assert (answer.status, answer.type) == (200, "text/plain")
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
        if sample.labels.get("space", "demo") == "demo"
    }


async def test_rooms_are_counted_as_they_are_when_asked(served: Served) -> None:
    socket = await served.eve.connect()
    await served.ann.say(payload={"text": "hi"})
    await served.ann.say("stream/request", payload={"direction": "upload"})
    await served.bot.send({"kind": "mcp/request"})
    told = await samples(served)
    assert told["mew_envelopes_received_total"] == 3
    assert told["mew_envelopes_refused_total"] == 1
    assert told["mew_deliveries_total"] == 4  # her own presence, the chat, the request and the stream/open
    assert told["mew_connections"] == 1
    assert told["mew_participants"] == 1
    assert told["mew_streams"] == 1
    assert told["mew_history_envelopes"] == 4
    assert told["mew_history_bytes"] > 0
    assert told["mew_outbox_bytes"] == 0
    assert told["mew_space_up"] == 1
    await socket.close()


async def test_the_process_is_told_too(served: Served) -> None:
    told = await samples(served)
    assert told["process_resident_memory_bytes"] > 0
    assert told["python_info"] == 1
    assert told["mew_info"] == 1


async def test_each_space_has_its_own_numbers(serve: Serve) -> None:
    served = await serve(
        """
spaces: [{id: demo, name: Demo}, {id: other, name: Other}]
participants:
  ann: {tokens: [t-ann], capabilities: ["*"]}
server: {port: 0}
"""
    )
    await served.ann.send({"kind": "chat"}, space="other")
    assert (await samples(served))["mew_envelopes_received_total"] == 0
