# Builds what JRuby needs, beside the gems of the peer on MRI, with which this is run. Their folders are
# written to build/load_path. build/jruby is made last: without it, the peer is not built yet.
require 'fileutils'
require 'rails'
require 'action_controller/railtie'
require 'action_cable/engine'
require 'puma/cli'

# concurrent-ruby loads its Java classes from a jar. Debian's package has their sources only.
concurrent = Gem.loaded_specs.fetch('concurrent-ruby')
sources = Dir[File.join(concurrent.gem_dir, 'ext/**/*.java')].sort
abort "no sources of the Java classes of concurrent-ruby in #{concurrent.gem_dir}/ext" if sources.empty?
quiet = { 'JDK_JAVAC_OPTIONS' => '-nowarn -Xlint:-removal -XDignore.symbol.file' }
system(quiet, '../build-java', '17', 'WebsocketMaskService.java', *sources) or exit 1

# Default gems are left out: JRuby has its own. Debian's websocket-driver is in the last folder.
gems = Gem.loaded_specs.values.reject(&:default_gem?)
folders = gems.flat_map(&:full_require_paths) << RbConfig::CONFIG['vendordir']
File.write('build/load_path', folders.join("\n"))

exit if File.exist?('build/jruby')
jar = File.join(File.dirname(File.realpath('build/java')), 'jar')
FileUtils.mkdir_p('build/concurrent')
system(jar, 'cf', 'build/concurrent/concurrent_ruby.jar', '-C', 'build/classes', '.') or exit 1
File.symlink('java', 'build/jruby')
