# Builds what JRuby needs beside the gems of the MRI peer, and writes their folders to build/load_path.
# Run with MRI.
require 'fileutils'
require 'rails'
require 'action_controller/railtie'
require 'action_cable/engine'
require 'puma/cli'

# JRuby has a standard library of its own.
gems = Gem.loaded_specs.values.reject(&:default_gem?)

# concurrent-ruby wants its Java classes in a jar. Debian's package has their sources, and no jar.
concurrent = gems.find { |gem| gem.name == 'concurrent-ruby' } or abort 'needs the gem concurrent-ruby'
sources = Dir[File.join(concurrent.gem_dir, 'ext/**/*.java')].sort
abort "needs the sources of concurrent-ruby's Java classes; not in #{concurrent.gem_dir}" if sources.empty?
quiet = { 'JDK_JAVAC_OPTIONS' => '-nowarn -Xlint:-removal -XDignore.symbol.file' }
system(quiet, '../build-java', '17', 'WebsocketMaskService.java', *sources) or exit 1

jar = File.join(File.dirname(File.realpath('build/java')), 'jar')
FileUtils.mkdir_p('build/concurrent')
system(jar, '--create', '--file', 'build/concurrent/concurrent_ruby.jar', '-C', 'build/classes', '.') or exit 1
# Debian's websocket-driver is not in the folder of its gem, but in the last one here.
folders = gems.flat_map(&:full_require_paths) << RbConfig::CONFIG['vendordir']
File.write('build/load_path', folders.join("\n"))
