# Replies with the time. Without Content-Length, thin would close after each reply.
run lambda { |env|
  found = env['PATH_INFO'] == '/'
  body = found ? "Hello. The time is #{Time.now.to_i}" : 'Not found'
  headers = { 'Content-Type' => 'text/plain', 'Content-Length' => body.bytesize.to_s }
  [found ? 200 : 404, headers, [body]]
}
