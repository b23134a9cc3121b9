import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.VirtualThreadPool;

/**
 * Runs the servlet of ../tomcat in Jetty, or replies with the time: Main PORT THREADS WORKLOAD. The port speaks
 * HTTP/1.1, and HTTP/2 with prior knowledge.
 */
public class Main {
    public static void main(String[] args) throws Exception {
        var threads = new QueuedThreadPool();
        if (args[1].equals("virtual")) {
            threads.setVirtualThreadsExecutor(new VirtualThreadPool());
        }
        var server = new Server(threads);
        var config = new HttpConfiguration();
        var http2 = new HTTP2CServerConnectionFactory(config);
        http2.setMaxConcurrentStreams(1024);
        var connector = new ServerConnector(server, new HttpConnectionFactory(config), http2);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(args[0]));
        connector.setAcceptQueueSize(4096);
        connector.setIdleTimeout(3_600_000);
        server.addConnector(connector);
        server.setHandler(args[2].equals("hello") ? new Hello() : servlet());
        server.start();
        server.join();
    }

    private static Handler servlet() {
        var handler = new ServletContextHandler();
        handler.addServlet(HashServlet.class, "/hash");
        return handler;
    }

    /** Does not block, so Jetty calls it on the thread that read the request. */
    private static class Hello extends Handler.Abstract.NonBlocking {
        @Override
        public boolean handle(Request request, Response response, Callback callback) {
            if (!request.getHttpURI().getPath().equals("/")) {
                return false;
            }
            response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain");
            var text = "Hello. The time is " + System.currentTimeMillis() / 1000;
            response.write(true, StandardCharsets.US_ASCII.encode(text), callback);
            return true;
        }
    }
}
