// Answers each line, an integer, with its double; "end" ends the conversation.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"runtime"
	"strconv"
	"time"
)

const (
	maxLine  = 1024
	maxShown = 32
	// Limits on reading after the conversation, so that closing does not reset the connection.
	drainBytes = 1 << 20
	drainTime  = time.Second
)

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1")
	cores := flag.Int("cores", runtime.NumCPU(), "threads that run Go code at a time")
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil { // usually out of descriptors: some will be closed soon
			log.Print(err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go serve(conn.(*net.TCPConn))
	}
}

func serve(conn *net.TCPConn) {
	defer conn.Close()
	out := bufio.NewWriter(conn)
	in := bufio.NewScanner(flushFirst{conn, out})
	in.Split(splitLine)
	for in.Scan() && string(in.Bytes()) != "end" {
		out.Write(double(out.AvailableBuffer(), in.Bytes()))
	}
	if in.Err() == bufio.ErrTooLong {
		fmt.Fprintf(out, "error: line longer than %d bytes\n", maxLine)
	}
	out.Flush()
	conn.CloseWrite()
	conn.SetReadDeadline(time.Now().Add(drainTime))
	io.CopyN(io.Discard, conn, drainBytes)
}

// flushFirst writes the pending answers before it waits for more requests.
type flushFirst struct {
	io.Reader
	out *bufio.Writer
}

func (f flushFirst) Read(p []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}

// splitLine is bufio.ScanLines with a limit that is reported as soon as a line exceeds it,
// and without a last line that has no newline.
func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	line, _, found := bytes.Cut(data, []byte("\n"))
	if found {
		advance = len(line) + 1
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > maxLine {
		return 0, nil, bufio.ErrTooLong
	}
	if !found {
		return 0, nil, nil
	}
	return advance, line, nil
}

// double appends the answer to a line.
func double(out, line []byte) []byte {
	if n, err := strconv.ParseInt(string(line), 10, 62); err == nil {
		return append(strconv.AppendInt(out, 2*n, 10), '\n')
	}
	n, ok := new(big.Int).SetString(string(line), 10)
	if ok && (n.IsInt64() || n.IsUint64()) {
		return append(n.Lsh(n, 1).Append(out, 10), '\n')
	}
	out = append(out, "error: not an integer: "...)
	if len(line) > maxShown {
		line = line[:maxShown]
	}
	for _, b := range line {
		switch {
		case b == '\\':
			out = append(out, `\\`...)
		case ' ' <= b && b <= '~':
			out = append(out, b)
		default:
			out = fmt.Appendf(out, `\x%02x`, b)
		}
	}
	return append(out, '\n')
}
