// A WebSocket hub with golang.org/x/net/websocket, the library of the article.
//
// The handler reads; a second goroutine writes from a bounded queue. A member whose queue is full is
// disconnected, so it never blocks others. The library frames and writes each message separately for each
// member. It treats each fragment, and each frame with an unknown opcode, as a whole message.
//
// net.Listen takes its backlog from net.core.somaxconn (4096), and Go disables Nagle's algorithm.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/websocket"
)

const (
	maxMessage = 1 << 20
	maxQueue   = 1 << 20 // unsent bytes of a member

	normal      = 1000 // close codes
	invalidData = 1007
	tooBig      = 1009
)

var members = struct {
	sync.RWMutex
	all map[*member]bool
}{all: map[*member]bool{}}

type member struct {
	conn    *websocket.Conn
	queue   *queue
	code    int           // to close with
	written chan struct{} // closed after the last write
}

// queue holds the unsent texts of a member. A channel would always take the memory of its bound.
type queue struct {
	sync.Mutex
	changed sync.Cond
	waiting []string // a string is sent as text, a []byte as binary
	bytes   int
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = q
	return q
}

// put returns false if the queue is full.
func (q *queue) put(text string) bool {
	q.Lock()
	defer q.Unlock()
	if q.bytes > maxQueue {
		return false
	}
	q.waiting = append(q.waiting, text)
	q.bytes += len(text)
	q.changed.Signal()
	return true
}

// take waits for texts and returns all of them, or none if the queue is closed and empty. It reuses the
// memory of the slice that it returned before.
func (q *queue) take(before []string) []string {
	q.Lock()
	defer q.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	taken := q.waiting
	clear(before)
	q.waiting, q.bytes = before[:0], 0
	return taken
}

func (q *queue) close() {
	q.Lock()
	defer q.Unlock()
	q.closed = true
	q.changed.Signal()
}

type message struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"` // forwarded unchanged
}

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	// A bare websocket.Handler would refuse clients that send no Origin.
	http.Handle("/ws", websocket.Server{Handler: serve})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}

func serve(conn *websocket.Conn) {
	conn.MaxPayloadBytes = maxMessage
	m := &member{conn, newQueue(), normal, make(chan struct{})}
	members.Lock()
	members.all[m] = true
	members.Unlock()
	defer m.leave()
	go m.write()
	for {
		var data []byte
		if err := websocket.Message.Receive(conn, &data); err == websocket.ErrFrameTooLarge {
			m.code = tooBig
			return
		} else if err != nil {
			return
		}
		if !utf8.Valid(data) {
			m.code = invalidData
			return
		}
		m.answer(data)
	}
}

func (m *member) answer(data []byte) {
	var in message
	err := json.Unmarshal(data, &in)
	switch {
	case err != nil:
		m.enqueue(failure(err.Error()))
	case in.Payload == nil:
		m.enqueue(failure("no payload"))
	case in.Type == "echo":
		m.enqueue(fmt.Sprintf(`{"type":"echo","payload":%s}`, in.Payload))
	case in.Type == "broadcast":
		n := broadcast(fmt.Sprintf(`{"type":"broadcast","payload":%s}`, in.Payload))
		// The queue is in order: this follows the member's own copy.
		m.enqueue(fmt.Sprintf(`{"type":"broadcastResult","payload":%s,"listenerCount":%d}`, in.Payload, n))
	default:
		m.enqueue(failure("unknown type"))
	}
}

func failure(why string) string {
	text, _ := json.Marshal(map[string]string{"type": "error", "error": why}) // strings always marshal
	return string(text)
}

// broadcast returns the number of members for which the text is queued.
func broadcast(text string) (n int) {
	members.RLock()
	defer members.RUnlock()
	for m := range members.all {
		if m.enqueue(text) {
			n++
		}
	}
	return n
}

// enqueue never blocks. A member that is too slow is disconnected.
func (m *member) enqueue(text string) bool {
	if !m.queue.put(text) {
		// Its read and its write fail at once. Close would wait for the write to end.
		m.conn.SetDeadline(time.Unix(1, 0))
		return false
	}
	return true
}

func (m *member) write() {
	defer close(m.written)
	var taken []string
	for taken = m.queue.take(taken); len(taken) > 0; taken = m.queue.take(taken) {
		for _, text := range taken {
			if websocket.Message.Send(m.conn, text) != nil {
				return // its read fails, too
			}
		}
	}
	m.conn.WriteClose(m.code)
}

// leave lets the writer send the queued texts. When the handler returns, the library closes the connection.
func (m *member) leave() {
	members.Lock()
	delete(members.all, m)
	members.Unlock()
	m.queue.close()
	m.conn.SetWriteDeadline(time.Now().Add(time.Second))
	<-m.written
}
