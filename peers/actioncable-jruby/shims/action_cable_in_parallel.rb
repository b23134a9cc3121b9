# Three places where Action Cable counts on threads that take turns, as on MRI. On JRuby they run at once,
# and there a load finds members that are confirmed twice, and Close frames without an answer.
require 'action_cable'

module InParallel
  # The worker and the event loop both confirm a subscription if they come to it at the same time.
  module ConfirmsOnce
    CONFIRMING = Mutex.new

    private

    def transmit_subscription_confirmation
      CONFIRMING.synchronize { super }
    end
  end
  ActionCable::Channel::Base.prepend(ConfirmsOnce)

  # A message that comes between the look at the buffer and its being emptied would stay there.
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

  # What is written while another thread writes is put into a queue, which is lost if it is the answer to a
  # Close frame: then the socket is closed at once. No writer ever waits for the network, so all wait for
  # each other instead.
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
