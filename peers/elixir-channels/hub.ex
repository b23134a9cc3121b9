# A WebSocket hub with channels as Phoenix has them, on Cowboy: a process for each member's socket, another
# one for its channel, and Elixir's Registry, which Phoenix.PubSub is made of. The messages are Phoenix's own,
# version 2 of their JSON: [join_ref, ref, topic, event, payload].
#
# As in Phoenix, a channel registers its member's socket as a fast lane: a broadcast is encoded once, in the
# channel of its sender, and goes to the sockets without passing through the other channels. Then the channel
# replies. Unlike Phoenix, it encodes with jiffy, and a silent member is not closed.
#
# Nobody waits for a slow member: a message to a process is queued, and a write that takes longer than
# send_timeout ends the member.
defmodule Hub do
  @behaviour :cowboy_websocket

  @backlog 4096
  @max_message 1_048_576
  @send_timeout_ms 5_000
  # To remove a member takes a registry as long as there are members in its partition.
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

  # All that waits leaves in one write. One write each would also scan the mailbox each time for the
  # answer of the socket, so that a member who falls behind would fall behind ever faster.
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
    # A binary this long is shared by the mailboxes, not copied.
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
