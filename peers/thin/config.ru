# Greets with the time. thin would close after a reply without Content-Length.
run lambda { |env|
  found = env['PATH_INFO'] == '/'
  body = found ? "Hello. The time is #{Time.now.to_i}" : 'Not found'
  headers = { 'Content-Type' => 'text/plain', 'Content-Length' => body.bytesize.to_s }
  [found ? 200 : 404, headers, [body]]
}
