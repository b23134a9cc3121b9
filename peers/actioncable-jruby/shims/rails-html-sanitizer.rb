# In place of the gem rails-html-sanitizer, which needs nokogiri, and that its C extension. Action View
# loads it and uses it only where a page is sanitized; here are no pages.
