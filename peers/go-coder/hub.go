// A WebSocket hub with coder/websocket.
//
// As in the library's chat example, each member has a bounded queue, and a member whose queue is full is
// closed, so it never blocks others. The handler reads; a second goroutine writes. The library frames and
// writes each message separately for each member.
//
// net.Listen takes its backlog from net.core.somaxconn (4096), and Go disables Nagle's algorithm.
// Compression is off by default.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"
)

const (
	maxMessage = 1 << 20
	maxQueue   = 1 << 20 // unsent bytes of a member
)

var members = struct {
	sync.RWMutex
	all map[*member]bool
}{all: map[*member]bool{}}

type member struct {
	conn  *websocket.Conn
	queue *queue
	slow  sync.Once
}

// queue holds the unsent texts of a member. A channel would always take the memory of its bound.
type queue struct {
	sync.Mutex
	changed sync.Cond
	waiting [][]byte
	bytes   int
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = q
	return q
}

// put returns false if the queue is full.
func (q *queue) put(text []byte) bool {
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
func (q *queue) take(before [][]byte) [][]byte {
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
	http.HandleFunc("/ws", serve)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}

func serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage) // closes with 1009
	m := &member{conn: conn, queue: newQueue()}
	members.Lock()
	members.all[m] = true
	members.Unlock()
	defer m.leave()
	go m.write()
	for {
		// A context without a deadline costs no timer. A full queue ends a stalled write.
		_, data, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		if !utf8.Valid(data) { // the library does not check this
			conn.Close(websocket.StatusInvalidFramePayloadData, "invalid UTF-8")
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
		m.enqueue(fmt.Appendf(nil, `{"type":"echo","payload":%s}`, in.Payload))
	case in.Type == "broadcast":
		n := broadcast(fmt.Appendf(nil, `{"type":"broadcast","payload":%s}`, in.Payload))
		// The queue is in order: this follows the member's own copy.
		m.enqueue(fmt.Appendf(nil, `{"type":"broadcastResult","payload":%s,"listenerCount":%d}`, in.Payload, n))
	default:
		m.enqueue(failure("unknown type"))
	}
}

func failure(why string) []byte {
	text, _ := json.Marshal(map[string]string{"type": "error", "error": why}) // strings always marshal
	return text
}

// broadcast returns the number of members for which the text is queued.
func broadcast(text []byte) (n int) {
	members.RLock()
	defer members.RUnlock()
	for m := range members.all {
		if m.enqueue(text) {
			n++
		}
	}
	return n
}

// enqueue never blocks. A member that is too slow is closed, which ends its read.
func (m *member) enqueue(text []byte) bool {
	if !m.queue.put(text) {
		m.slow.Do(func() { go m.conn.Close(websocket.StatusTryAgainLater, "reads too slowly") })
		return false
	}
	return true
}

func (m *member) write() {
	var taken [][]byte
	for taken = m.queue.take(taken); len(taken) > 0; taken = m.queue.take(taken) {
		for _, text := range taken {
			if m.conn.Write(context.Background(), websocket.MessageText, text) != nil {
				m.conn.CloseNow() // ends its read, too
				return
			}
		}
	}
}

func (m *member) leave() {
	members.Lock()
	delete(members.all, m)
	members.Unlock()
	m.queue.close()
}
