// Clients of go-redis that count in their own keys until stdin ends: see scripts/deploys.
//
//	deploys PORT CLIENTS FIRST
//
// Prints a JSON object: how often they counted, what was wrong with a reply, and the errors.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

type result struct {
	Counted int      `json:"counted"`
	Wrong   []string `json:"wrong"`
	Errors  []string `json:"errors"`
}

func main() {
	numbers := make([]int, 3)
	for i, argument := range os.Args[1:] {
		numbers[i], _ = strconv.Atoi(argument)
	}
	port, clients, first := numbers[0], numbers[1], numbers[2]
	all := result{Wrong: []string{}, Errors: []string{}}
	var lock sync.Mutex
	var over atomic.Bool
	var group sync.WaitGroup
	for number := first; number < first+clients; number++ {
		group.Add(1)
		go func() {
			defer group.Done()
			// The defaults of the library: RESP3, and handoffs if the server has them.
			client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port)})
			key, expected := fmt.Sprintf("go:%d", number), int64(0)
			for !over.Load() {
				reply, err := client.Incr(context.Background(), key).Result()
				lock.Lock()
				if err != nil {
					all.Errors = append(all.Errors, err.Error())
					expected = -1
				} else {
					if expected >= 0 && reply != expected+1 {
						all.Wrong = append(all.Wrong, fmt.Sprintf("%s: %d instead of %d", key, reply, expected+1))
					}
					expected = reply
					all.Counted++
				}
				lock.Unlock()
			}
		}()
	}
	fmt.Println("started")
	io.Copy(io.Discard, os.Stdin)
	over.Store(true)
	group.Wait()
	text, _ := json.Marshal(all)
	fmt.Println(string(text))
}
