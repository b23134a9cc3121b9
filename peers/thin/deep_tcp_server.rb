# Thin's TCP backend with a longer backlog: EventMachine's default is 100.
class DeepTcpServer < Thin::Backends::TcpServer
  def initialize(host, port, _options)
    super(host, port)
  end

  def connect
    socket = TCPServer.new(@host, @port)
    socket.listen(4096)
    @signature = EventMachine.attach_server(socket, Thin::Connection, &method(:initialize_connection))
  end
end
