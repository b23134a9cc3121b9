{-# LANGUAGE OverloadedStrings #-}
-- | Answers each line, an integer, with its double; @end@ ends the conversation.
module Main (main) where

import Conduit
import Control.Exception (IOException, handle)
import Control.Monad (unless)
import qualified Data.ByteString.Builder as Builder
import Data.ByteString.Builder (Builder)
import qualified Data.ByteString.Char8 as B
import Data.ByteString.Char8 (ByteString)
import qualified Data.ByteString.Lazy as Lazy
import Data.Conduit.Network
import Data.Int (Int64)
import Data.Maybe (fromMaybe)
import Data.Streaming.Network (appRawSocket)
import Data.Word (Word64)
import Network.Socket (ShutdownCmd (ShutdownSend), shutdown)
import System.Environment (getArgs)
import System.Timeout (timeout)

main :: IO ()
main = do
  ["--port", port] <- getArgs
  runTCPServer (serverSettings (read port) "127.0.0.1") (handle clientGone . serve)
  where
    clientGone :: IOException -> IO ()
    clientGone _ = pure ()

serve :: AppData -> IO ()
serve app = do
  runConduit $ appSource app .| answers .| appSink app
  mapM_ (`shutdown` ShutdownSend) (appRawSocket app)
  -- Reads after the conversation, so that closing does not reset the connection.
  _ <- timeout 1000000 . runConduit $ appSource app .| takeCE 1048576 .| sinkNull
  pure ()

-- | All answers to one chunk leave in one write.
answers :: Monad m => ConduitT ByteString ByteString m ()
answers = go ""
  where
    go rest = await >>= mapM_ (\chunk -> do
      let (due, next) = replies mempty (rest <> chunk)
          bytes = Lazy.toStrict (Builder.toLazyByteString due)
      unless (B.null bytes) (yield bytes)
      mapM_ go next)

-- | Appends the replies to the lines of the input to the pending ones. Returns them with the remaining
-- input, unless the conversation has ended.
replies :: Builder -> ByteString -> (Builder, Maybe ByteString)
replies due input
  | B.length line > maxLine = (due <> "error: line longer than 1024 bytes\n", Nothing)
  | B.null newline          = (due, Just input)
  | line == "end"           = (due, Nothing)
  | otherwise               = replies (due <> double line) (B.drop 1 newline)
  where
    (raw, newline) = B.break (== '\n') input
    line = fromMaybe raw (B.stripSuffix "\r" raw)

maxLine :: Int
maxLine = 1024

double :: ByteString -> Builder
double line = case B.readInteger line of
  Just (n, "") | least <= n, n <= most -> Builder.integerDec (2 * n) <> "\n"
  _ -> "error: not an integer: " <> foldMap escape (B.unpack (B.take 32 line)) <> "\n"
  where
    least = toInteger (minBound :: Int64)
    most = toInteger (maxBound :: Word64)

escape :: Char -> Builder
escape '\\' = "\\\\"
escape c
  | ' ' <= c, c <= '~' = Builder.char7 c
  | otherwise          = "\\x" <> Builder.word8HexFixed (fromIntegral (fromEnum c))
