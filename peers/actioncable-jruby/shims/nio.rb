# In place of the gem nio4r: what Puma and Action Cable use of it, on a selector of java.nio, as its own
# Java extension does it.
require 'java'

module NIO
  SelectionKey = java.nio.channels.SelectionKey
  OPERATIONS = { r: SelectionKey::OP_READ, w: SelectionKey::OP_WRITE,
                 rw: SelectionKey::OP_READ | SelectionKey::OP_WRITE, nil => 0 }.freeze

  # A socket and what is awaited of it.
  class Monitor
    attr_reader :io
    attr_accessor :value

    def initialize(io, key)
      @io = io
      @key = key
      @ready = 0
    end

    def interests=(interests)
      @key.interest_ops(OPERATIONS.fetch(interests)) if @key.valid?
    end

    def readable?
      @ready & SelectionKey::OP_READ != 0
    end

    def writable?
      @ready & SelectionKey::OP_WRITE != 0
    end

    # Called by the selector when it has selected the key. False if the socket was closed meanwhile.
    def ready
      @ready = @key.ready_ops
      true
    rescue java.nio.channels.CancelledKeyException
      false
    end
  end

  # All methods but `wakeup` are for one thread.
  class Selector
    def initialize
      @selector = java.nio.channels.Selector.open
      @keys = {}.compare_by_identity # by socket, since one that is closed has no channel any more
    end

    def register(io, interests)
      io = io.to_io
      channel = io.to_channel
      channel.configure_blocking(false)
      # What was deregistered since the last `select` is not forgotten before the next.
      @selector.select_now if channel.key_for(@selector)
      key = @keys[io] = channel.register(@selector, OPERATIONS.fetch(interests))
      Monitor.new(io, key).tap { |monitor| key.attach(monitor) }
    rescue java.nio.channels.ClosedChannelException
      raise ArgumentError, 'closed' # what Puma expects
    end

    def deregister(io)
      @keys.delete(io.to_io)&.cancel
    end

    # Waits for up to `timeout` seconds, without one for ever, until a socket is ready or `wakeup` is called.
    # Returns the monitors that are ready; with a block, yields them.
    def select(timeout = nil, &block)
      case timeout
      when nil then @selector.select
      when 0 then @selector.select_now
      else @selector.select((timeout * 1000).ceil)
      end
      keys = @selector.selected_keys
      monitors = keys.map(&:attachment).select(&:ready)
      keys.clear
      block ? monitors.each(&block) : monitors
    end

    def wakeup
      @selector.wakeup
    end

    def close
      @selector.close
    end
  end
end
