package com.jcoglan.websocket;

import org.jruby.Ruby;
import org.jruby.RubyModule;
import org.jruby.RubyString;
import org.jruby.anno.JRubyMethod;
import org.jruby.runtime.ThreadContext;
import org.jruby.runtime.builtin.IRubyObject;
import org.jruby.runtime.load.BasicLibraryService;
import org.jruby.util.ByteList;

/**
 * WebSocket::Mask. Replaces the Java class of this name in the gem websocket-driver, because Debian builds
 * only the C extension. The gem creates this class and calls basicLoad.
 */
public class WebsocketMaskService implements BasicLibraryService {
    @Override
    public boolean basicLoad(Ruby runtime) {
        RubyModule mask = runtime.defineModule("WebSocket").defineModuleUnder("Mask");
        mask.defineAnnotatedMethods(WebsocketMaskService.class);
        return true;
    }

    /** Returns the payload with each byte XORed with one of the mask's four bytes (RFC 6455, 5.3). */
    @JRubyMethod(meta = true)
    public static IRubyObject mask(
            ThreadContext context, IRubyObject self, IRubyObject payload, IRubyObject mask) {
        if (mask.isNil()) {
            return payload;
        }
        byte[] bytes = payload.convertToString().getBytes();
        ByteList key = mask.convertToString().getByteList();
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] ^= (byte) key.get(i & 3);
        }
        return RubyString.newString(context.runtime, new ByteList(bytes, false));
    }
}
