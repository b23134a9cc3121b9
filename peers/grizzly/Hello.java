import static java.nio.charset.StandardCharsets.US_ASCII;

import org.glassfish.grizzly.http.server.HttpHandler;
import org.glassfish.grizzly.http.server.HttpServer;
import org.glassfish.grizzly.http.server.NetworkListener;
import org.glassfish.grizzly.http.server.Request;
import org.glassfish.grizzly.http.server.Response;
import org.glassfish.grizzly.http.util.FastHttpDateFormat;
import org.glassfish.grizzly.http.util.Header;
import org.glassfish.grizzly.strategies.SameThreadIOStrategy;

/** Replies with the time over HTTP: Hello PORT. */
public class Hello extends HttpHandler {
    public static void main(String[] args) throws Exception {
        var listener = new NetworkListener("hello", "127.0.0.1", Integer.parseInt(args[0]));
        var transport = listener.getTransport();
        transport.setServerConnectionBackLog(4096);
        transport.setIOStrategy(SameThreadIOStrategy.getInstance()); // the handler never waits
        listener.getKeepAlive().setMaxRequestsCount(-1); // by default it closes after 256
        listener.getFileCache().setEnabled(false); // there are no files, and it looks each request up
        listener.getKeepAlive().setIdleTimeoutInSeconds(3600);
        var server = new HttpServer();
        server.addListener(listener);
        server.getServerConfiguration().addHttpHandler(new Hello(), "/");
        server.start();
        Thread.currentThread().join(); // its own threads are daemons
    }

    @Override
    public void service(Request request, Response response) throws Exception {
        if (!request.getRequestURI().equals("/")) {
            response.setStatus(404);
            return;
        }
        byte[] body = ("Hello. The time is " + System.currentTimeMillis() / 1000).getBytes(US_ASCII);
        response.setHeader(Header.Date, FastHttpDateFormat.getCurrentDate()); // cached for a second
        response.setContentType("text/plain");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
