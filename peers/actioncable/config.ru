# A WebSocket hub as a channel of Action Cable, in one Puma process on MRI.
#
# Action Cable speaks a protocol of its own on top of WebSocket (subprotocol actioncable-v1-json): a client
# waits for a welcome, subscribes to HubChannel, and wraps each message as the data of a `message` command.
#
# The order of messages needs care. The adapter `async` gives each delivery to one of ten threads, and a
# channel's transmit overtakes what is streamed. With the adapter `inline` and a single worker, deliveries
# are queued in order; MRI runs one thread at a time anyway. The result is streamed, too, by a stream of
# its own, so that it follows the sender's copy.
#
# What waits for a slow member is queued without a bound: Action Cable has no setting for it.
require 'logger'
require 'rails'
require 'action_controller/railtie'
require 'action_cable/engine'

class Hub < Rails::Application
  config.load_defaults 6.1
  config.root = __dir__
  config.eager_load = true
  config.secret_key_base = 'no secrets are kept here'
  config.hosts.clear
  config.logger = Logger.new(IO::NULL)
  config.action_cable.mount_path = '/ws'
  config.action_cable.disable_request_forgery_protection = true
  config.action_cable.cable = { 'adapter' => 'inline' }
  config.action_cable.worker_pool_size = 1
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
  end
end

class HubChannel < ActionCable::Channel::Base
  EVERYBODY = 'everybody'

  def subscribed
    stream_from EVERYBODY
    stream_from own
  end

  def echo(data)
    transmit({ type: 'echo', payload: data['payload'] })
  end

  def broadcast(data)
    count = ActionCable.server.connections.size
    ActionCable.server.broadcast(EVERYBODY, { type: 'broadcast', payload: data['payload'] })
    result = { type: 'broadcastResult', payload: data['payload'], listenerCount: count }
    ActionCable.server.broadcast(own, result)
  end

  private

  def own
    "member #{object_id}"
  end
end

Hub.initialize!
run Hub
