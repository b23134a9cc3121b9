# Replies with the time. EventMachine has no HTTP server; this one supports requests without a body,
# pipelining with one write for all replies, HTTP/1.0, and HEAD.
require 'eventmachine'
require 'socket'
require 'time'

class Hello < EM::Connection
  MAX_HEAD = 16_384
  MOST_WAITING = 16 << 20 # unsent bytes of answers; a client with more is disconnected
  REQUEST = %r{\A(\S+) (/[^ ?]*)\S* HTTP/1\.([01])\r\n}
  HAS_BODY = /^(content-length:[ \t]*0*[^0\s]|transfer-encoding:)/i
  ASKS_CLOSE = /^connection:.*\bclose\b/i
  ASKS_KEEP = /^connection:.*\bkeep-alive\b/i
  # HTTP/1.1 keeps a connection by default, HTTP/1.0 only if both ends send keep-alive.
  CONNECTION = { true => '', :said => "Connection: keep-alive\r\n", false => "Connection: close\r\n" }.freeze

  # Unix seconds; Time.now would allocate an object.
  def self.now
    Process.clock_gettime(Process::CLOCK_REALTIME, :second)
  end

  # The Date header, made once per second.
  def self.date
    @second, @date = now, Time.now.httpdate unless now == @second
    @date
  end

  def post_init
    @rest = String.new
    @answers = String.new
  end

  def receive_data(data)
    @rest << data
    start = 0
    keep = true
    while keep && (stop = @rest.index("\r\n\r\n", start))
      keep = answer(@rest[start...stop + 2])
      start = stop + 4
    end
    @rest.slice!(0, start)
    keep &&= @rest.bytesize <= MAX_HEAD || reply('431 Request Header Fields Too Large', 'Too large', false)
    send_data(@answers)
    @answers.clear
    return close_connection_after_writing unless keep

    # EventMachine's pause stops writing as well as reading, so it cannot be used for backpressure.
    close_connection if get_outbound_data_size > MOST_WAITING
  end

  # Answers one request. Returns whether the connection is kept; so does reply.
  def answer(head)
    method, path, minor = REQUEST.match(head)&.captures
    return reply('400 Bad Request', 'Not HTTP/1.1', false) unless method
    return reply('413 Content Too Large', 'No body, please', false) if head.match?(HAS_BODY)

    keep = minor == '1' ? !head.match?(ASKS_CLOSE) : head.match?(ASKS_KEEP) && :said
    with_body = method != 'HEAD'
    return reply('404 Not Found', 'Not found', keep, with_body) unless path == '/'
    return reply('405 Method Not Allowed', 'GET, please', keep) unless %w[GET HEAD].include?(method)

    reply('200 OK', "Hello. The time is #{Hello.now}", keep, with_body)
  end

  def reply(status, body, keep, with_body = true)
    @answers << "HTTP/1.1 #{status}\r\nDate: #{Hello.date}\r\n" \
                "Content-Type: text/plain\r\nContent-Length: #{body.bytesize}\r\n#{CONNECTION[keep]}\r\n"
    @answers << body if with_body
    keep
  end
end

EM.epoll
EM.set_descriptor_table_size(20_000)
EM.run do
  socket = TCPServer.new('127.0.0.1', ARGV.fetch(0).to_i)
  socket.listen(4096) # EventMachine's own sockets listen with a backlog of 100
  EM.attach_server(socket, Hello)
end
