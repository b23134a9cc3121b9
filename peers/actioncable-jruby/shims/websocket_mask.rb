# In place of the C extension of the gem websocket-driver, which the gem loads here and then calls
# com.jcoglan.websocket.WebsocketMaskService: that is on the class path.
