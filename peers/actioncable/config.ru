# A WebSocket hub as a channel of Action Cable, in one Puma process: on MRI, and for the peer
# actioncable-jruby on JRuby.
#
# Action Cable has its own protocol on top of WebSocket (subprotocol actioncable-v1-json): a client waits for
# a welcome, subscribes to HubChannel, and wraps each message as the data of a `message` command.
#
# The order of messages needs care: the adapter `async` passes each delivery to one of ten threads. With the
# adapter `inline` and a single worker, one thread handles all messages and deliveries in order, even if
# threads run in parallel. MRI runs one thread at a time anyway. An action has no reply, and needs none: the
# sender is also a subscriber.
#
# Messages for a slow member are queued without a bound: Action Cable has no setting for it.
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
  end

  def broadcast(data)
    ActionCable.server.broadcast(EVERYBODY, { payload: data['payload'] })
  end
end

Hub.initialize!
run Hub
