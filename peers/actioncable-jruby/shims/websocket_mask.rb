# Replaces the C extension of the gem websocket-driver. The gem loads this file and then calls
# com.jcoglan.websocket.WebsocketMaskService, which is on the class path.
