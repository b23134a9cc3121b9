// A hub on Centrifuge, the library inside Centrifugo: one node with its broker in memory. All members
// subscribe to one channel and publish to it.
//
// Centrifuge limits the queue of a member to 1 MiB, and disconnects a member that exceeds it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"

	"github.com/centrifugal/centrifuge"
)

const maxMessage = 1 << 20

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)

	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		log.Fatal(err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{}}, nil // anonymous
	})
	node.OnConnect(func(member *centrifuge.Client) {
		member.OnSubscribe(func(_ centrifuge.SubscribeEvent, reply centrifuge.SubscribeCallback) {
			reply(centrifuge.SubscribeReply{}, nil)
		})
		// Centrifuge publishes, queues the copies, and then replies.
		member.OnPublish(func(_ centrifuge.PublishEvent, reply centrifuge.PublishCallback) {
			reply(centrifuge.PublishReply{}, nil)
		})
	})
	if err := node.Run(); err != nil {
		log.Fatal(err)
	}
	http.Handle("/ws", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		ReadBufferSize:     1024,
		UseWriteBufferPool: true,
		MessageSizeLimit:   maxMessage,
	}))
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}
