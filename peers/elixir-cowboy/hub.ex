# A WebSocket hub with Cowboy, a process per member, and Elixir's Registry, on which Phoenix.PubSub is
# based. Phoenix's channels, which the article used, add a process per member and wrap each message: see
# elixir-channels.
#
# A slow member does not block others: a message to a process is queued, and a write that takes longer than
# send_timeout disconnects the member. Cowboy checks UTF-8 and closes connections that violate the protocol.
# permessage-deflate is off by default.
defmodule Hub do
  @behaviour :cowboy_websocket

  @backlog 4096
  @max_message 1_048_576
  @send_timeout_ms 5_000
  # The time to remove a member is proportional to the members in its partition of the registry.
  @partitions 32

  def main(port) do
    {:ok, _} = Application.ensure_all_started(:cowboy)
    {:ok, _} = Registry.start_link(keys: :duplicate, name: Hub.Members, partitions: @partitions)
    routes = :cowboy_router.compile([{:_, [{"/ws", Hub, nil}]}])

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
  def init(request, state) do
    {:cowboy_websocket, request, state, %{idle_timeout: :infinity, max_frame_size: @max_message}}
  end

  @impl true
  def websocket_init(state) do
    {:ok, _} = Registry.register(Hub.Members, :all, nil)
    {[], state}
  end

  @impl true
  def websocket_handle({:text, text}, state) do
    case decode(text) do
      %{"type" => "echo", "payload" => payload} ->
        {[text_of(type: "echo", payload: payload)], state}

      %{"type" => "broadcast", "payload" => payload} ->
        count = broadcast(text_of(type: "broadcast", payload: payload))
        # The result follows the member's own copy, which is in this process's mailbox.
        send(self(), text_of(type: "broadcastResult", payload: payload, listenerCount: count))
        {[], state}

      {:error, why} ->
        {[text_of(type: "error", error: why)], state}

      _ ->
        {[text_of(type: "error", error: "no payload, or an unknown type")], state}
    end
  end

  def websocket_handle(_ping_or_binary, state), do: {[], state}

  # All pending frames leave in one write. Separate writes would each scan the mailbox for the socket's reply,
  # so that a member that falls behind would fall behind ever faster.
  @impl true
  def websocket_info({:text, _} = frame, state), do: {[frame | waiting()], state}

  defp waiting do
    receive do
      {:text, _} = frame -> [frame | waiting()]
    after
      0 -> []
    end
  end

  # The mailboxes share a binary of this size instead of copying it.
  defp broadcast(frame) do
    members = Registry.lookup(Hub.Members, :all)
    for {member, _} <- members, do: send(member, frame)
    length(members)
  end

  defp decode(text) do
    :jiffy.decode(text, [:return_maps])
  catch
    :error, {at, why} -> {:error, "#{why} at byte #{at}"}
  end

  # A list keeps the order of its keys; a map does not.
  defp text_of(message), do: {:text, :jiffy.encode({message}) |> IO.iodata_to_binary()}
end
