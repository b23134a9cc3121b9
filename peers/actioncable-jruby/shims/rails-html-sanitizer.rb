# Replaces the gem rails-html-sanitizer, which needs nokogiri and its C extension. Action View loads it, but
# uses it only to sanitize pages, and this peer has none.
