-- The programs in Haskell that Hearth's components are compared with: haskell-peers ROW ROUNDS.
--
-- Threads of GHC's own runtime and MVars, in the same shapes as research/benches/runtime/*.isf. An
-- MVar holds one value, so a sender need not wait until its value is taken.
{-# LANGUAGE BangPatterns #-}
module Main (main) where

import Control.Concurrent (forkIO, yield)
import Control.Concurrent.MVar
import Control.Monad (foldM, forM_, replicateM_, void)
import Data.Int (Int32)
import System.Environment (getArgs)
import System.Exit (ExitCode (ExitFailure), exitWith)
import System.IO (hPutStrLn, stderr)

type Channel = MVar Int32

pingPong :: Int -> IO Int32
pingPong rounds = do
  ball <- newEmptyMVar
  back <- newEmptyMVar
  void . forkIO . replicateM_ rounds $ do
    value <- takeMVar ball
    putMVar back $! value + 1
  let go :: Int -> Int32 -> IO Int32
      go 0 !value = pure value
      go n !value = putMVar ball value >> takeMVar back >>= go (n - 1)
  go rounds 0

stream :: Int -> IO Int32
stream rounds = do
  next <- newEmptyMVar
  void . forkIO $ forM_ [1 .. fromIntegral rounds] $ \i -> putMVar next $! i
  let go :: Int -> Int32 -> IO Int32
      go 0 !total = pure total
      go n !total = takeMVar next >>= \value -> go (n - 1) (total + value)
  go rounds 0

-- A station between two channels that handles this many tokens.
station :: Int -> Channel -> IO Channel
station count before = do
  onward <- newEmptyMVar
  void . forkIO . replicateM_ count $ do
    token <- takeMVar before
    putMVar onward $! token + 1
  pure onward

ring :: Int -> IO Int32
ring laps = do
  first <- newEmptyMVar
  final <- foldM (\before _ -> station laps before) first [2 .. 503 :: Int]
  let go :: Int -> Int32 -> IO Int32
      go 0 !value = pure value
      go n !value = (putMVar first $! value + 1) >> takeMVar final >>= go (n - 1)
  go laps 0

create :: Int -> IO Int32
create thousands = do
  ended <- newEmptyMVar
  let go :: Int -> Int32 -> IO Int32
      go 0 !made = pure made
      go n !made = do
        replicateM_ 999 . forkIO $ pure ()
        void . forkIO $ putMVar ended 1000
        takeMVar ended >>= \more -> go (n - 1) (made + more)
  go thousands 0

blocked :: Int -> IO Int32
blocked count = do
  start <- newEmptyMVar
  let go :: Int -> Channel -> IO Channel
      go 0 final = pure final
      go n before = station 1 before >>= go (n - 1)
  final <- go count start
  -- Each has its turn to come to its receive.
  yield
  putMVar start 0
  takeMVar final

main :: IO ()
main = do
  arguments <- getArgs
  let rows =
        [ ("ping-pong", pingPong),
          ("stream", stream),
          ("ring", ring),
          ("create", create),
          ("blocked", blocked)
        ]
  case arguments of
    [row, rounds] | Just run <- lookup row rows -> run (read rounds) >>= print
    _ -> do
      hPutStrLn stderr "usage: haskell-peers ROW ROUNDS"
      exitWith (ExitFailure 2)
