# Builds the files that JRuby needs in addition to the gems of the MRI peer. Runs on MRI with these gems, and
# writes their folders to build/load_path. build/jruby is created last: it marks the peer as built.
require 'fileutils'
require 'rails'
require 'action_controller/railtie'
require 'action_cable/engine'
require 'puma/cli'

# concurrent-ruby loads its Java classes from a jar. Debian's package has only their sources.
concurrent = Gem.loaded_specs.fetch('concurrent-ruby')
sources = Dir[File.join(concurrent.gem_dir, 'ext/**/*.java')].sort
abort "no sources of the Java classes of concurrent-ruby in #{concurrent.gem_dir}/ext" if sources.empty?
quiet = { 'JDK_JAVAC_OPTIONS' => '-nowarn -Xlint:-removal -XDignore.symbol.file' }
system(quiet, '../build-java', '17', 'WebsocketMaskService.java', *sources) or exit 1

# Default gems are omitted, because JRuby has its own. Debian's websocket-driver is in the last folder.
gems = Gem.loaded_specs.values.reject(&:default_gem?)
folders = gems.flat_map(&:full_require_paths) << RbConfig::CONFIG['vendordir']
File.write('build/load_path', folders.join("\n"))

exit if File.exist?('build/jruby')
jar = File.join(File.dirname(File.realpath('build/java')), 'jar')
FileUtils.mkdir_p('build/concurrent')
system(jar, 'cf', 'build/concurrent/concurrent_ruby.jar', '-C', 'build/classes', '.') or exit 1
File.symlink('java', 'build/jruby')
