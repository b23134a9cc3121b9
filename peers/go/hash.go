// Hashes a file over HTTP, as many times as the request says.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

const maxTimes = 100_000

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	http.HandleFunc("/hash", hash)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}

func hash(w http.ResponseWriter, r *http.Request) {
	times, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || times < 1 || times > maxTimes {
		http.Error(w, fmt.Sprintf("n must be an integer from 1 to %d", maxTimes), http.StatusBadRequest)
		return
	}
	data, err := os.ReadFile(os.Getenv("HASH_FILE"))
	if err != nil {
		http.Error(w, fmt.Sprintf("the file cannot be read: %v", err), http.StatusInternalServerError)
		return
	}
	var digest [sha256.Size]byte
	for i := 0; i < times; i++ {
		digest = sha256.Sum256(data)
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%x", digest)
}
