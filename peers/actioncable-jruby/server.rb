# Puma on JRuby, with the gems of the MRI peer: server.rb ARGUMENTS, which are those of Puma.
#
# Debian builds the native parts of gems for MRI only. concurrent-ruby's Java classes are compiled by
# setup.rb. The folder `shims` has what stands in for the others; it comes first on the load path.
require 'socket'
require 'ffi'

$LOAD_PATH.unshift("#{__dir__}/shims", "#{__dir__}/build")
$LOAD_PATH.concat(File.readlines("#{__dir__}/build/load_path", chomp: true))

module NativeSocket
  extend FFI::Library
  ffi_lib FFI::Library::LIBC
  attach_function :listen, %i[int int], :int
end

# What Puma asks of the listening socket has no effect on JRuby: `listen` does nothing, so that 50
# connections may wait, and TCP_NODELAY is not passed on to the sockets that are accepted.
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

# JRuby would wait at its end for a thread that waits in a selector.
at_exit { ActionCable.server.event_loop.stop }

Puma::CLI.new(ARGV).run
