"""A backend of a hub in which `ann` and `bob` are in the room `red`, with cent.

    backend.py URL KEY
"""

import sys

import cent


def main(url, key):
    client = cent.Client(url, key)
    red = "red"
    client.publish(cent.PublishRequest(channel=red, data={"n": 1}))
    responses = client.broadcast(cent.BroadcastRequest(channels=[red, "blue"], data="all")).responses
    assert len(responses) == 2 and all(one.error is None for one in responses), responses
    stats = client.presence_stats(cent.PresenceStatsRequest(channel=red))
    assert (stats.num_clients, stats.num_users) == (2, 2), stats
    clients = client.presence(cent.PresenceRequest(channel=red)).presence
    assert sorted(one.user for one in clients.values()) == ["ann", "bob"], clients
    channels = client.channels(cent.ChannelsRequest()).channels
    assert channels[red].num_clients == 2, channels
    nodes = client.info(cent.InfoRequest()).nodes
    assert len(nodes) == 1 and nodes[0].num_clients == 2, nodes
    request = cent.PublishRequest(channel=red, data=3, idempotency_key="3")
    replies = client.batch(cent.BatchRequest(requests=[request, request])).replies
    assert len(replies) == 2, replies
    try:
        client.history(cent.HistoryRequest(channel=red))
        raise AssertionError("the hub keeps no messages")
    except cent.CentApiResponseError as error:
        assert error.code == 108, error
    try:
        cent.Client(url, "wrong").info(cent.InfoRequest())
        raise AssertionError("a wrong key is accepted")
    except cent.CentUnauthorizedError:
        pass
    away = cent.Disconnect(code=4000, reason="enough")
    client.disconnect(cent.DisconnectRequest(user="ann", disconnect=away))
    client.unsubscribe(cent.UnsubscribeRequest(user="bob", channel=red))


main(*sys.argv[1:])
