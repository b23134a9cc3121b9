;; A WebSocket hub with Undertow from Clojure, an IO thread per core.
;;
;; Undertow queues texts and writes them on the member's own IO thread, so a slow member does not block
;; others. The queue has no bound, so this hub counts the texts in it and disconnects a member with too many.
;; A broadcast is encoded once and framed for each member. permessage-deflate is off unless it is added.
;; Undertow disables Nagle's algorithm.
(ns hub
  (:gen-class)
  (:require [clojure.data.json :as json])
  (:import [io.undertow Handlers Undertow]
           [io.undertow.websockets WebSocketConnectionCallback]
           [io.undertow.websockets.core AbstractReceiveListener BufferedTextMessage WebSocketCallback
            WebSocketChannel WebSockets]
           [java.nio ByteBuffer]
           [java.nio.charset StandardCharsets]
           [java.util Set]
           [java.util.concurrent ConcurrentHashMap]
           [java.util.concurrent.atomic AtomicInteger]
           [org.xnio ChannelListener IoUtils Options]))

(set! *warn-on-reflection* true)

(def backlog 4096)
(def max-message 1048576)
(def max-unsent 4096) ; texts

(def ^Set members (ConcurrentHashMap/newKeySet))

;; A member. Undertow calls `complete` or `onError` for each text.
(deftype Member [^WebSocketChannel channel ^AtomicInteger unsent]
  WebSocketCallback
  (complete [_ _ _] (.decrementAndGet unsent))
  (onError [_ _ _ _] (IoUtils/safeClose channel)))

;; Strings of plain ASCII are written as they were read.
(defn encode ^ByteBuffer [message]
  (let [text (json/write-str message :escape-slash false :escape-unicode false)]
    (ByteBuffer/wrap (.getBytes ^String text StandardCharsets/UTF_8))))

(defn send! [^Member member ^ByteBuffer text]
  (let [^WebSocketChannel channel (.-channel member)
        ^AtomicInteger unsent (.-unsent member)]
    (if (< (.incrementAndGet unsent) max-unsent)
      (WebSockets/sendText (.duplicate text) channel ^WebSocketCallback member)
      (IoUtils/safeClose channel))))

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

(defn listener [member]
  (proxy [AbstractReceiveListener] []
    (getMaxTextBufferSize [] max-message)
    (onFullTextMessage [_ ^BufferedTextMessage message]
      (send! member (encode (try (answer! (.getData message))
                                 (catch Exception e {:type "error" :error (ex-message e)})))))))

(def join
  (reify WebSocketConnectionCallback
    (onConnect [_ _ channel]
      (let [member (Member. channel (AtomicInteger.))]
        (.add members member)
        (.addCloseTask channel (reify ChannelListener (handleEvent [_ _] (.remove members member))))
        (.set (.getReceiveSetter channel) (listener member))
        (.resumeReceives channel)))))

(defn -main [port cores]
  (-> (Undertow/builder)
      (.addHttpListener (parse-long port) "127.0.0.1")
      (.setIoThreads (parse-long cores))
      (.setSocketOption Options/BACKLOG (int backlog))
      (.setHandler (.addExactPath (Handlers/path) "/ws" (Handlers/websocket join)))
      .build
      .start))
