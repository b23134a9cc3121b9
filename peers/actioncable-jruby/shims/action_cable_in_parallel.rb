# Fixes three places where Action Cable relies on threads that do not run in parallel, as on MRI. On JRuby
# they do, and a load finds members that are confirmed twice and Close frames without an answer.
require 'action_cable'

module InParallel
  # The worker and the event loop may both confirm a subscription at the same time.
  module ConfirmsOnce
    CONFIRMING = Mutex.new

    private

    def transmit_subscription_confirmation
      CONFIRMING.synchronize { super }
    end
  end
  ActionCable::Channel::Base.prepend(ConfirmsOnce)

  # A message that arrives while the buffer is processed would stay there.
  module BuffersAlone
    def initialize(...)
      @alone = Mutex.new
      super
    end

    def append(message)
      @alone.synchronize { super }
    end

    def process!
      @alone.synchronize { super }
    end
  end
  ActionCable::Connection::MessageBuffer.prepend(BuffersAlone)

  # Data that is written while another thread writes goes into a queue. An answer to a Close frame would be
  # lost there, because the socket is closed at once. No writer ever waits for the network, so the writers
  # wait for each other instead.
  class Turns < Mutex
    def try_lock
      lock
      true
    end
  end

  module WritesInTurn
    def initialize(...)
      super
      @write_lock = Turns.new
    end
  end
  ActionCable::Connection::Stream.prepend(WritesInTurn)
end
