import static io.netty.handler.codec.http.HttpHeaderNames.CONTENT_LENGTH;
import static io.netty.handler.codec.http.HttpHeaderNames.CONTENT_TYPE;
import static io.netty.handler.codec.http.HttpHeaderNames.DATE;
import static io.netty.handler.codec.http.HttpResponseStatus.BAD_REQUEST;
import static io.netty.handler.codec.http.HttpResponseStatus.NOT_FOUND;
import static io.netty.handler.codec.http.HttpResponseStatus.OK;
import static java.nio.charset.StandardCharsets.US_ASCII;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.handler.codec.DateFormatter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.util.AsciiString;
import io.netty.util.ReferenceCountUtil;
import java.util.Date;

/** Replies with the time over HTTP/1.1, or over HTTP/2 with prior knowledge: Hello PORT [http2]. */
public class Hello extends ChannelInboundHandlerAdapter {
    /** A second of Unix time and its Date header. */
    private record Second(long time, AsciiString date) {
        static Second of(long time) {
            return new Second(time, new AsciiString(DateFormatter.format(new Date(time * 1000))));
        }
    }

    private static volatile Second second = Second.of(0);

    private static Second now() {
        long time = System.currentTimeMillis() / 1000;
        Second now = second;
        if (now.time != time) {
            second = now = Second.of(time);
        }
        return now;
    }

    public static void main(String[] args) throws Exception {
        ChannelInitializer<Channel> pipeline =
            args.length > 1 && args[1].equals("http2") ? http2() : http1();
        int cores = Runtime.getRuntime().availableProcessors();
        new ServerBootstrap()
            .group(new MultiThreadIoEventLoopGroup(cores, EpollIoHandler.newFactory()))
            .channel(EpollServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, 4096)
            .childHandler(pipeline)
            .bind("127.0.0.1", Integer.parseInt(args[0])).sync();
    }

    private static ChannelInitializer<Channel> http1() {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(
                    new HttpServerCodec(), new HttpServerKeepAliveHandler(), new Hello());
            }
        };
    }

    /** A channel for each stream, whose frames become the messages of HTTP/1.1. */
    private static ChannelInitializer<Channel> http2() {
        var stream = new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(
                    new Http2StreamFrameToHttpObjectCodec(true), new Hello());
            }
        };
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(
                    Http2FrameCodecBuilder.forServer().build(), new Http2MultiplexHandler(stream));
            }
        };
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (message instanceof HttpRequest request) {
            context.write(answer(request));
        }
        ReferenceCountUtil.release(message);
    }

    private static FullHttpResponse answer(HttpRequest request) {
        if (request.decoderResult().isFailure()) {
            return response(request, BAD_REQUEST, request.decoderResult().cause().getMessage());
        }
        if (!request.uri().equals("/") && !request.uri().startsWith("/?")) {
            return response(request, NOT_FOUND, "there is no " + request.uri());
        }
        return response(request, OK, "Hello. The time is " + now().time);
    }

    private static FullHttpResponse response(
            HttpRequest request, HttpResponseStatus status, String text) {
        var body = Unpooled.wrappedBuffer(text.getBytes(US_ASCII));
        var response = new DefaultFullHttpResponse(request.protocolVersion(), status, body);
        response.headers()
            .set(CONTENT_TYPE, "text/plain")
            .set(DATE, now().date)
            .setInt(CONTENT_LENGTH, body.readableBytes());
        HttpUtil.setKeepAlive(response, HttpUtil.isKeepAlive(request) && status != BAD_REQUEST);
        return response;
    }

    /** Answers all requests of one read with one write. */
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
    }

    /** Stops reading from a client that does not read its replies. */
    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        context.channel().config().setAutoRead(context.channel().isWritable());
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }
}
