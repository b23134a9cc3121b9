# A WebSocket hub with channels like those of Phoenix, on Cowboy: a process for each member's socket, another
# for its channel, and Elixir's Registry, on which Phoenix.PubSub is based. The messages are in version 2 of
# Phoenix's JSON format: [join_ref, ref, topic, event, payload].
#
# As in Phoenix, a channel registers its member's socket for direct delivery ("fastlane"): the sender's channel
# encodes a broadcast once and sends it to the sockets, bypassing the other channels. Then the channel replies.
# Unlike Phoenix, it encodes with jiffy, and does not close silent members.
#
# A slow member does not block others: a message to a process is queued, and a write that takes longer than
# send_timeout disconnects the member.
defmodule Hub do
  @behaviour :cowboy_websocket

  @backlog 4096
  @max_message 1_048_576
  @send_timeout_ms 5_000
  # The time to remove a member is proportional to the members in its partition of the registry.
  @partitions 32

  def main(port) do
    {:ok, _} = Application.ensure_all_started(:cowboy)
    {:ok, _} = Registry.start_link(keys: :duplicate, name: Hub.PubSub, partitions: @partitions)
    routes = :cowboy_router.compile([{:_, [{"/socket/websocket", Hub, nil}]}])

    socket = [
      ip: {127, 0, 0, 1},
      port: port,
      backlog: @backlog,
      nodelay: true,
      send_timeout: @send_timeout_ms,
      send_timeout_close: true
    ]

    transport = %{max_connections: :infinity, socket_opts: socket}
    {:ok, _} = :cowboy.start_clear(:hub, transport, %{env: %{dispatch: routes}})
    # The registry is linked to this process.
    Process.sleep(:infinity)
  end

  @impl true
  def init(request, _) do
    options = %{idle_timeout: :infinity, max_frame_size: @max_message}
    {:cowboy_websocket, request, %{}, options}
  end

  # The channels by their topics.
  @impl true
  def websocket_handle({:text, text}, channels) do
    case Message.decode(text) do
      [_, ref, "phoenix", "heartbeat", _] ->
        {[Message.reply(nil, ref, "phoenix", "ok")], channels}

      [join_ref, ref, "room:" <> _ = topic, "phx_join", _] when not is_map_key(channels, topic) ->
        {:ok, channel} = Hub.Channel.start_link({self(), join_ref, topic})
        {[Message.reply(join_ref, ref, topic, "ok")], Map.put(channels, topic, channel)}

      [_, ref, topic, event, payload] when is_map_key(channels, topic) ->
        send(channels[topic], {:message, ref, event, payload})
        {[], channels}

      [join_ref, ref, topic | _] ->
        {[Message.reply(join_ref, ref, topic, "error")], channels}
    end
  end

  def websocket_handle(_ping_or_binary, channels), do: {[], channels}

  # All pending frames leave in one write. Separate writes would each scan the mailbox for the socket's reply,
  # so that a member that falls behind would fall behind ever faster.
  @impl true
  def websocket_info({:text, _} = frame, channels), do: {[frame | waiting()], channels}

  defp waiting do
    receive do
      {:text, _} = frame -> [frame | waiting()]
    after
      0 -> []
    end
  end
end

defmodule Hub.Channel do
  use GenServer

  def start_link(member), do: GenServer.start_link(__MODULE__, member)

  @impl true
  def init({socket, _, topic} = member) do
    {:ok, _} = Registry.register(Hub.PubSub, topic, socket)
    {:ok, member}
  end

  @impl true
  def handle_info({:message, ref, "broadcast", payload}, {socket, join_ref, topic} = member) do
    # The mailboxes share a binary of this size instead of copying it.
    frame = Message.push(topic, "broadcast", payload)

    Registry.dispatch(Hub.PubSub, topic, fn members ->
      for {_channel, socket} <- members, do: send(socket, frame)
    end)

    send(socket, Message.reply(join_ref, ref, topic, "ok"))
    {:noreply, member}
  end

  def handle_info({:message, ref, _event, _payload}, {socket, join_ref, topic} = member) do
    send(socket, Message.reply(join_ref, ref, topic, "error"))
    {:noreply, member}
  end
end

defmodule Message do
  def decode(text), do: :jiffy.decode(text, [:return_maps, :use_nil])

  def push(topic, event, payload), do: encode([nil, nil, topic, event, payload])

  def reply(join_ref, ref, topic, status) do
    encode([join_ref, ref, topic, "phx_reply", %{status: status, response: %{}}])
  end

  defp encode(message), do: {:text, IO.iodata_to_binary(:jiffy.encode(message, [:use_nil]))}
end
