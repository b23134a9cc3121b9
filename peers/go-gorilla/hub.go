// A WebSocket hub with gorilla/websocket.
//
// As in the library's chat example, each member has a goroutine that reads, a goroutine that writes, and a
// bounded queue in front of the writer. A member whose queue is full is disconnected, so it never blocks
// others. A broadcast is framed once, as a prepared message. The library writes each message separately.
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

	"github.com/gorilla/websocket"
)

const (
	maxMessage = 1 << 20
	maxQueue   = 1 << 20 // unsent bytes of a member
)

var upgrader = websocket.Upgrader{
	ReadBufferSize: 1024,
	// A member holds a write buffer only while it writes.
	WriteBufferPool: &sync.Pool{},
}

var members = struct {
	sync.RWMutex
	all map[*member]bool
}{all: map[*member]bool{}}

type member struct {
	conn  *websocket.Conn
	queue *queue
}

// outgoing is a text, already framed if it is a broadcast.
type outgoing struct {
	text  []byte
	frame *websocket.PreparedMessage
}

// queue holds the unsent texts of a member. A channel would always take the memory of its bound.
type queue struct {
	sync.Mutex
	changed sync.Cond
	waiting []outgoing
	bytes   int
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = q
	return q
}

// put returns false if the queue is full.
func (q *queue) put(out outgoing) bool {
	q.Lock()
	defer q.Unlock()
	if q.bytes > maxQueue {
		return false
	}
	q.waiting = append(q.waiting, out)
	q.bytes += len(out.text)
	q.changed.Signal()
	return true
}

// take waits for texts and returns all of them, or none if the queue is closed and empty. It reuses the
// memory of the slice that it returned before.
func (q *queue) take(before []outgoing) []outgoing {
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
	http.HandleFunc("/ws", join)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}

func join(w http.ResponseWriter, r *http.Request) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	m := &member{conn, newQueue()}
	members.Lock()
	members.all[m] = true
	members.Unlock()
	// Once this function returns, the memory of the HTTP request can be freed.
	go m.write()
	go m.read()
}

func (m *member) read() {
	defer m.leave()
	m.conn.SetReadLimit(maxMessage) // closes with 1009
	for {
		_, data, err := m.conn.ReadMessage()
		if err != nil {
			return
		}
		if !utf8.Valid(data) { // the library does not check this
			bye := websocket.FormatCloseMessage(websocket.CloseInvalidFramePayloadData, "invalid UTF-8")
			m.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
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
		m.enqueue(outgoing{text: failure(err.Error())})
	case in.Payload == nil:
		m.enqueue(outgoing{text: failure("no payload")})
	case in.Type == "echo":
		m.enqueue(outgoing{text: fmt.Appendf(nil, `{"type":"echo","payload":%s}`, in.Payload)})
	case in.Type == "broadcast":
		n := broadcast(fmt.Appendf(nil, `{"type":"broadcast","payload":%s}`, in.Payload))
		// The queue is in order: this follows the member's own copy.
		m.enqueue(outgoing{text: fmt.Appendf(nil,
			`{"type":"broadcastResult","payload":%s,"listenerCount":%d}`, in.Payload, n)})
	default:
		m.enqueue(outgoing{text: failure("unknown type")})
	}
}

func failure(why string) []byte {
	text, _ := json.Marshal(map[string]string{"type": "error", "error": why}) // strings always marshal
	return text
}

// broadcast returns the number of members for which the text is queued.
func broadcast(text []byte) (n int) {
	frame, err := websocket.NewPreparedMessage(websocket.TextMessage, text)
	if err != nil {
		return 0
	}
	out := outgoing{text, frame}
	members.RLock()
	defer members.RUnlock()
	for m := range members.all {
		if m.enqueue(out) {
			n++
		}
	}
	return n
}

// enqueue never blocks. A member that is too slow is disconnected, which ends its read.
func (m *member) enqueue(out outgoing) bool {
	if !m.queue.put(out) {
		m.conn.Close() // without a close frame, which it would not read
		return false
	}
	return true
}

func (m *member) write() {
	var taken []outgoing
	for taken = m.queue.take(taken); len(taken) > 0; taken = m.queue.take(taken) {
		for _, out := range taken {
			var err error
			if out.frame != nil {
				err = m.conn.WritePreparedMessage(out.frame)
			} else {
				err = m.conn.WriteMessage(websocket.TextMessage, out.text)
			}
			if err != nil {
				m.conn.Close() // ends its read, too
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
	m.conn.Close()
}
