// Replies with the time over HTTP/1.1, or over HTTP/2 with prior knowledge.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"time"
)

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	http2 := flag.Bool("http2", false, "HTTP/2 in place of HTTP/1.1")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	http.HandleFunc("/", hello)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!*http2)
	protocols.SetUnencryptedHTTP2(*http2)
	server := http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", *port), Protocols: protocols}
	log.Fatal(server.ListenAndServe())
}

func hello(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "Hello. The time is %d", time.Now().Unix())
}
