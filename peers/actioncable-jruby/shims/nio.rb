# Replaces the gem nio4r: the parts that Puma and Action Cable use, on a java.nio selector like the gem's own
# Java extension.
require 'java'

module NIO
  SelectionKey = java.nio.channels.SelectionKey
  OPERATIONS = { r: SelectionKey::OP_READ, w: SelectionKey::OP_WRITE,
                 rw: SelectionKey::OP_READ | SelectionKey::OP_WRITE, nil => 0 }.freeze

  # A socket and the events that it is monitored for.
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

    # Called by the selector when it has selected the key. Returns false if the socket was closed meanwhile.
    def ready
      @ready = @key.ready_ops
      true
    rescue java.nio.channels.CancelledKeyException
      false
    end
  end

  # All methods except `wakeup` are for one thread.
  class Selector
    def initialize
      @selector = java.nio.channels.Selector.open
      @keys = {}.compare_by_identity # by socket, because a closed socket no longer has a channel
    end

    def register(io, interests)
      io = io.to_io
      channel = io.to_channel
      channel.configure_blocking(false)
      # A key that was cancelled since the last `select` is removed only by the next one.
      @selector.select_now if channel.key_for(@selector)
      key = @keys[io] = channel.register(@selector, OPERATIONS.fetch(interests))
      Monitor.new(io, key).tap { |monitor| key.attach(monitor) }
    rescue java.nio.channels.ClosedChannelException
      raise ArgumentError, 'closed' # what Puma expects
    end

    def deregister(io)
      @keys.delete(io.to_io)&.cancel
    end

    # Waits until a socket is ready or `wakeup` is called, for up to `timeout` seconds, or forever without a
    # timeout. Returns the monitors that are ready, or yields them to a block.
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
