// Hashes a file over HTTP, as many times as requested.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
)

const maxTimes = 100_000

// Buffers for the file: a new one for each request would keep the garbage collector busy.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

var goodSalt = regexp.MustCompile("^[0-9a-f]{1,32}$")

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	http.HandleFunc("/hash", hash)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}

func hash(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	times, err := strconv.Atoi(query.Get("n"))
	if err != nil || times < 1 || times > maxTimes {
		http.Error(w, fmt.Sprintf("n must be an integer from 1 to %d", maxTimes), http.StatusBadRequest)
		return
	}
	salt := query.Get("salt")
	if query.Has("salt") && !goodSalt.MatchString(salt) {
		http.Error(w, "salt must be 1 to 32 lower-case hex digits", http.StatusBadRequest)
		return
	}
	data := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(data)
	if err := read(data, os.Getenv("HASH_FILE")); err != nil {
		http.Error(w, fmt.Sprintf("the file cannot be read: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%x", digest(data.Bytes(), times, salt))
}

// read replaces the buffer's content with the file's content.
func read(data *bytes.Buffer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data.Reset()
	_, err = data.ReadFrom(file)
	return err
}

// digest hashes data `times` times. With a salt, each digest covers the previous digest and then data.
func digest(data []byte, times int, salt string) []byte {
	sha := sha256.New()
	last := []byte(salt)
	for i := 0; i < times; i++ {
		sha.Reset()
		if salt != "" {
			sha.Write(last)
		}
		sha.Write(data)
		last = sha.Sum(last[:0])
	}
	return last
}
