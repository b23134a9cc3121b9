# Replaces Puma's C extension: the parser of request heads.
module Puma
  class HttpParserError < IOError; end

  class HttpParser
    REQUEST = %r{\A([A-Z0-9$._-]{1,20}) (([^\s?#]+)(?:\?([^\s#]*))?)(?:\#(\S*))? (HTTP/\d+\.\d+)\r\n}n
    FIELD = /\G([!#-'*+.^-z|~0-9A-Z-]+): *([^\x00-\x08\x0a-\x1f\x7f]*)\r\n/n
    NAMES = %w[REQUEST_METHOD REQUEST_URI REQUEST_PATH QUERY_STRING FRAGMENT HTTP_VERSION].freeze
    BARE = %w[CONTENT_LENGTH CONTENT_TYPE].freeze

    # The bytes after the head, once the head is complete.
    attr_reader :body

    def reset
      @body = nil
    end

    def finished?
      !@body.nil?
    end

    # Stores the head in `env` if `data` has all of it. Returns the number of bytes that were parsed.
    def execute(env, data, _start)
      stop = data.index("\r\n\r\n")
      return data.bytesize unless stop

      head = data.byteslice(0, stop + 2)
      request = REQUEST.match(head) or raise HttpParserError, 'Invalid HTTP format, parsing fails.'
      NAMES.zip(request.captures.values_at(0, 1, 2, 3, 4, 5)) { |name, value| env[name] = value if value }
      parse_fields(env, head, request.end(0))
      @body = data.byteslice(stop + 4..)
      stop + 4
    end

    private

    def parse_fields(env, head, at)
      while at < head.bytesize
        field = FIELD.match(head, at) or raise HttpParserError, 'Invalid HTTP format, parsing fails.'
        name = field[1].upcase.tr('-', '_')
        name = "HTTP_#{name}" unless BARE.include?(name)
        env[name] = [env[name], field[2].rstrip].compact.join(', ')
        at = field.end(0)
      end
    end
  end
end
