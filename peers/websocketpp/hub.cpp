// A WebSocket hub with WebSocket++ on Boost.Asio, a thread per core.
//
// The library queues texts, so a slow member does not block others, and writes all queued texts of a member at
// once. A member with too many queued bytes is closed. A broadcast is framed once. This configuration has no
// permessage-deflate.
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <shared_mutex>
#include <thread>
#include <unordered_set>
#include <websocketpp/config/asio_no_tls.hpp>
#include <websocketpp/server.hpp>

namespace ws = websocketpp;
using json = nlohmann::json;
using Server = ws::server<ws::config::asio>;
using Member = Server::connection_ptr;

constexpr int backlog = 4096;
constexpr size_t max_message = 1 << 20;
constexpr size_t max_queued = 1 << 20; // bytes

static Server server;
static std::shared_mutex lock; // guards `members`
static std::unordered_set<Member> members;

// Returns the frame of a text, with a prepared header and payload that all members share.
static Server::message_ptr frame_of(const std::string& text)
{
    using Message = Server::message_ptr::element_type;
    auto message = std::make_shared<Message>(nullptr, ws::frame::opcode::text, text.size());
    ws::frame::basic_header head(ws::frame::opcode::text, text.size(), true, false);
    message->set_payload(text);
    message->set_header(ws::frame::prepare_header(head, ws::frame::extended_header(text.size())));
    message->set_prepared(true);
    return message;
}

// Queues a frame, and starts a write if none is in progress. Returns whether the frame was queued.
static bool send(const Member& member, const Server::message_ptr& frame)
{
    if (member->get_buffered_amount() > max_queued) {
        ws::lib::error_code already_closing;
        member->close(ws::close::status::try_again_later, "reads too slowly", already_closing);
        return false;
    }
    return !member->send(frame);
}

static size_t broadcast(const std::string& text)
{
    auto frame = frame_of(text);
    std::shared_lock guard(lock);
    size_t count = 0;
    for (const auto& member : members) count += send(member, frame);
    return count;
}

// Reproduces a payload that is a string of plain ASCII exactly.
static std::string answer(const std::string& text)
{
    auto message = json::parse(text);
    auto payload = message.at("payload").dump();
    auto type = message.at("type").get<std::string>();
    if (type == "echo") return R"({"type":"echo","payload":)" + payload + "}";
    if (type == "broadcast") {
        auto count = broadcast(R"({"type":"broadcast","payload":)" + payload + "}");
        return R"({"type":"broadcastResult","payload":)" + payload + R"(,"listenerCount":)"
            + std::to_string(count) + "}";
    }
    return R"({"type":"error","error":"unknown type"})";
}

static void on_message(ws::connection_hdl handle, Server::message_ptr message)
{
    std::string reply;
    try {
        reply = answer(message->get_payload());
    } catch (const json::exception& error) {
        reply = R"({"type":"error","error":)" + json(error.what()).dump() + "}";
    }
    send(server.get_con_from_hdl(handle), frame_of(reply));
}

static bool on_upgrade(ws::connection_hdl handle)
{
    auto connection = server.get_con_from_hdl(handle);
    if (connection->get_resource() == "/ws") return true;
    connection->set_status(ws::http::status_code::not_found);
    return false;
}

static void on_open(ws::connection_hdl handle)
{
    std::unique_lock guard(lock);
    members.insert(server.get_con_from_hdl(handle));
}

static void on_close(ws::connection_hdl handle)
{
    std::unique_lock guard(lock);
    members.erase(server.get_con_from_hdl(handle));
}

static void no_delay(ws::connection_hdl handle)
{
    boost::system::error_code gone;
    auto& socket = server.get_con_from_hdl(handle)->get_raw_socket();
    socket.set_option(boost::asio::ip::tcp::no_delay(true), gone);
}

// hub PORT CORES
int main(int argc, char** argv)
{
    if (argc != 3) {
        std::cerr << "usage: hub PORT CORES\n";
        return 2;
    }
    server.clear_access_channels(ws::log::alevel::all);
    server.clear_error_channels(ws::log::elevel::all);
    server.init_asio();
    server.set_reuse_addr(true);
    server.set_listen_backlog(backlog);
    server.set_max_message_size(max_message);
    server.set_tcp_post_init_handler(no_delay);
    server.set_validate_handler(on_upgrade);
    server.set_open_handler(on_open);
    server.set_close_handler(on_close);
    server.set_message_handler(on_message);
    auto here = boost::asio::ip::address_v4::loopback();
    server.listen({here, static_cast<unsigned short>(std::stoi(argv[1]))});
    server.start_accept();
    std::vector<std::thread> others;
    for (int i = 1; i < std::stoi(argv[2]); i++) others.emplace_back([] { server.run(); });
    server.run();
    for (auto& other : others) other.join();
}
