;; A WebSocket hub with Jetty from Clojure.
;;
;; Jetty queues texts and writes all that are queued for a member at once, so a slow member does not block
;; others. The queue is bounded: if it is full, sending fails and the member is disconnected. A broadcast is
;; encoded for each member, because texts are sent as strings. Jetty disables Nagle's algorithm.
(ns hub
  (:gen-class)
  (:require [clojure.data.json :as json])
  (:import [java.time Duration]
           [java.util Set]
           [java.util.concurrent ConcurrentHashMap]
           [java.util.function Consumer]
           [org.eclipse.jetty.server Server ServerConnector]
           [org.eclipse.jetty.server.handler ContextHandler]
           [org.eclipse.jetty.websocket.api Callback Session Session$Listener$AutoDemanding]
           [org.eclipse.jetty.websocket.core.server WebSocketServerComponents]
           [org.eclipse.jetty.websocket.server ServerWebSocketContainer WebSocketCreator
            WebSocketUpgradeHandler]))

(set! *warn-on-reflection* true)

(def backlog 4096)
(def max-message 1048576)
(def max-unsent 4096) ; texts

(def ^Set members (ConcurrentHashMap/newKeySet))

(defprotocol Sends
  (send! [member text]))

;; A session. Jetty calls `fail` for each text that could not be sent.
(deftype Member [^Session session]
  Callback
  (fail [_ _] (.disconnect session))
  Sends
  (send! [this text] (.sendText session ^String text this)))

;; Strings of plain ASCII are written as they were read.
(defn encode [message]
  (json/write-str message :escape-slash false :escape-unicode false))

;; Returns the number of members.
(defn broadcast! [text]
  (reduce (fn [n member] (send! member text) (inc n)) 0 members))

(defn answer! [text]
  (let [{:strs [type payload] :as message} (json/read-str text)]
    (cond
      (not (and (map? message) (contains? message "payload"))) {:type "error" :error "no payload"}
      (= type "echo") {:type "echo" :payload payload}
      (= type "broadcast") (let [n (broadcast! (encode {:type "broadcast" :payload payload}))]
                             {:type "broadcastResult" :payload payload :listenerCount n})
      :else {:type "error" :error "unknown type"})))

(defn endpoint []
  (let [joined (volatile! nil)]
    (reify Session$Listener$AutoDemanding
      (onWebSocketOpen [_ session]
        (.add members (vreset! joined (Member. session))))
      (onWebSocketText [_ text]
        (send! @joined (encode (try (answer! text)
                                    (catch Exception e {:type "error" :error (ex-message e)})))))
      (onWebSocketError [_ _]) ; Jetty closes the session
      (onWebSocketClose [_ _ _ callback]
        (.remove members @joined)
        (.succeed callback)))))

(defn configure [^ServerWebSocketContainer container]
  (doto container
    (.setMaxTextMessageSize max-message)
    (.setMaxOutgoingFrames max-unsent)
    (.setIdleTimeout (Duration/ofHours 1))
    (.addMapping "/ws" (reify WebSocketCreator (createWebSocket [_ _ _ _] (endpoint))))))

(defn -main [port]
  (let [server (Server.)
        connector (doto (ServerConnector. server)
                    (.setHost "127.0.0.1")
                    (.setPort (parse-long port))
                    (.setAcceptQueueSize backlog))
        context (ContextHandler. "/")]
    (.addConnector server connector)
    (.setHandler context
                 (WebSocketUpgradeHandler/from server context
                                               (reify Consumer (accept [_ c] (configure c)))))
    (.setHandler server context)
    (-> (WebSocketServerComponents/getWebSocketComponents context)
        .getExtensionRegistry
        (.unregister "permessage-deflate"))
    (.start server)))
