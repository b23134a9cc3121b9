# Puma on JRuby, with the gems of the MRI peer: server.rb ARGUMENTS, with Puma's arguments.
#
# Debian builds the native parts of gems only for MRI. setup.rb compiles concurrent-ruby's Java classes. The
# folder `shims`, first on the load path, replaces the others.
require 'socket'
require 'ffi'

$LOAD_PATH.unshift("#{__dir__}/shims", "#{__dir__}/build")
$LOAD_PATH.concat(File.readlines("#{__dir__}/build/load_path", chomp: true))

module NativeSocket
  extend FFI::Library
  ffi_lib FFI::Library::LIBC
  attach_function :listen, %i[int int], :int
end

# Puma's options for the listening socket have no effect on JRuby: `listen` does nothing, so the backlog is
# 50, and accepted sockets do not inherit TCP_NODELAY.
class TCPServer
  def listen(backlog)
    NativeSocket.listen(fileno, backlog)
  end

  prepend(Module.new do
    def accept_nonblock
      super.tap { |socket| socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
    end
  end)
end

require 'action_cable_in_parallel'
require 'puma/cli'

# Otherwise JRuby would not exit while a thread waits in a selector.
at_exit { ActionCable.server.event_loop.stop }

Puma::CLI.new(ARGV).run
